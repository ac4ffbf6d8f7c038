"""Saying who one is, where the service wants to know; and a service whose registry is elsewhere."""

import base64
import hashlib
import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.command import make_tokens
from tests.console.pages import (
    REFUND,
    answered,
    at,
    box,
    cards,
    fulfil,
    names,
    shortlist,
    sign,
)  # fmt: skip
from tests.integration.conftest import Mats, rows, serving, tool

AUDIENCE = "mats-api"


def token_for(audience, **claims):
    """A text in the form of a JWT; nobody here checks its signature."""
    parts = ({"alg": "RS256"}, {"aud": audience, **claims})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + ".sig"


@pytest.fixture
def console(opener, sample):
    """The console without a token."""
    return opener(sample.url)


ACCESS = token_for(AUDIENCE, use="access")


class Issuer:
    """An OpenID Connect issuer at the console's own address, as far as it is asked."""

    def __init__(self, console, **tokens):
        self.url, self.page, self.tokens = console.url, console.page, tokens or {"access_token": ACCESS}
        self.wish, self.exchanges = {}, []
        self.answer = lambda wish: {"code": "the-code", "state": wish["state"]}
        settings = {"issuer": f"{self.url}/issuer", "clientId": "mats-console", "audience": AUDIENCE}
        fulfil(self.page, {"signIn": settings}, url="**/console/config.json")
        ends = {f"{name}_endpoint": f"{self.url}/issuer/{name}?v=2" for name in ("authorization", "token")}
        fulfil(self.page, ends, url="**/issuer/.well-known/openid-configuration")
        self.page.route("**/issuer/authorization*", self._sends_back)
        self.page.route("**/issuer/token*", self._exchanges)

    def _sends_back(self, route):
        self.wish = {name: value for name, [value] in parse_qs(urlsplit(route.request.url).query).items()}
        back = "&".join(f"{name}={value}" for name, value in self.answer(self.wish).items())
        route.fulfill(status=302, headers={"Location": f"{self.wish['redirect_uri']}?{back}"})

    def _exchanges(self, route):
        self.exchanges.append({name: value for name, [value] in parse_qs(route.request.post_data).items()})
        route.fulfill(json=self.tokens, status=200 if "access_token" in self.tokens else 400)


def guarded(page, answer):
    """Let the service refuse whoever has no token; what was sent as one is kept."""
    sent = []

    def serve(route):
        sent.append(route.request.headers.get("authorization"))
        if sent[-1]:
            route.fulfill(json=answer)
        else:
            route.fulfill(status=401, json={"detail": "A token is needed."})

    page.route("**/discover", serve)
    fulfil(page, {}, url="**/registry/preview")
    return sent


@pytest.fixture
def refused(console, sample):
    """The page at a question that the service refuses to answer to nobody, and the tokens that were sent."""
    console.forgive(r"status of 401 .*/discover")
    sent = guarded(console.page, answered(sample, REFUND))

    def opened():
        page = console.open(at("search", q=REFUND))
        expect(shortlist(page).get_by_text("A token is needed.")).to_be_visible()
        return page, sent

    return opened


def test_without_an_authorizer_there_is_no_sign_in(console):
    console.forgive(r"status of 404 .*/registry")  # of a service in AWS, which has none
    fulfil(console.page, {"detail": "there is nothing"}, url="**/registry", status=404)
    page = console.open(at("search", q=REFUND))
    expect(cards(page).first).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Sign"))).to_have_count(0)


def test_signing_in_at_the_issuer_brings_a_token_and_the_question_back(console, refused):
    issuer = Issuer(console)
    page, sent = refused()
    sign(page).click()
    expect(names(page).first).to_have_text("create_refund")
    expect(page).to_have_url(f"{console.url}/{at('search', q=REFUND)}")
    assert sent[-1] == f"Bearer {ACCESS}"
    wish, [exchange] = issuer.wish, issuer.exchanges
    assert wish["response_type"] == "code"
    assert wish["client_id"] == exchange["client_id"] == "mats-console"
    assert wish["redirect_uri"] == exchange["redirect_uri"] == f"{console.url}/"
    assert wish["audience"] == AUDIENCE
    assert "openid" in wish["scope"]
    assert wish["code_challenge_method"] == "S256"
    digest = hashlib.sha256(exchange["code_verifier"].encode()).digest()
    assert wish["code_challenge"] == base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert len(exchange["code_verifier"]) >= 43
    assert exchange["grant_type"] == "authorization_code"
    assert exchange["code"] == "the-code"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"code": "the-code", "state": "wrong"}, "the answer is not to this request"),
        ({"code": "the-code"}, "the answer is not to this request"),
        ({"error": "access_denied", "error_description": "You+said+no", "state": "wrong"}, "You said no"),
    ],
)
def test_an_answer_to_another_request_is_refused_visibly(console, refused, answer, told):
    issuer = Issuer(console)
    issuer.answer = lambda wish: answer
    page, sent = refused()
    sign(page).click()
    expect(page.get_by_role("alert")).to_have_text(f"Signing in did not work: {told}")
    expect(sign(page)).to_be_visible()
    assert issuer.exchanges == []
    assert not any(sent)
    assert "code=" not in page.url


def test_a_stranger_s_code_in_the_address_is_not_taken(console):
    issuer = Issuer(console)
    console.page.goto(f"{console.url}/?code=stolen&state=stolen#/search")
    expect(box(console.page)).to_be_focused()
    assert issuer.exchanges == []
    assert console.page.evaluate("sessionStorage.length") == 0


def test_an_issuer_that_cannot_be_asked_leaves_the_token_dialog(console, refused):
    console.forgive(r"net::ERR_FAILED")
    Issuer(console)
    console.page.route("**/issuer/.well-known/*", lambda route: route.abort())
    page, sent = refused()
    sign(page).click()
    dialog = page.get_by_role("dialog", name="Sign in")
    expect(dialog).to_contain_text("The issuer does not answer")
    dialog.get_by_label("A bearer token of your issuer").fill("by-hand")
    page.keyboard.press("Enter")
    expect(names(page).first).to_be_visible()
    assert sent[-1] == "Bearer by-hand"


def test_pasted_token_is_stored_in_the_tab_only(console, refused):
    page, sent = refused()
    sign(page).click()
    dialog = page.get_by_role("dialog", name="Sign in")
    field = dialog.get_by_label("A bearer token of your issuer")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("type", "password")
    field.fill("  Bearer pasted ")
    dialog.get_by_role("button", name="Sign in").click()
    expect(names(page).first).to_be_visible()
    assert sent[-1] == "Bearer pasted"
    assert page.evaluate("localStorage.length") == 0
    assert "pasted" not in page.url
    page.reload()
    expect(names(page).first).to_be_visible()
    assert sent[-1] == "Bearer pasted"


def test_signing_out_deletes_the_token_and_its_answers(refused):
    page, sent = refused()
    sign(page).click()
    page.get_by_role("dialog").get_by_label("A bearer token of your issuer").fill("mine")
    page.keyboard.press("Enter")
    expect(names(page).first).to_be_visible()
    sign(page, "Sign out").click()
    expect(shortlist(page).get_by_text("A token is needed.")).to_be_visible()
    expect(cards(page)).to_have_count(0)
    assert sent[-1] is None
    assert page.evaluate("sessionStorage.length") == 0


def test_a_token_that_has_expired_is_dropped_and_asked_for_again(console, sample):
    console.forgive(r"status of 401 .*/discover")
    page = console.open()
    page.evaluate("sessionStorage.setItem('mats.token', 'old')")
    fulfil(page, {"detail": "The token has expired."}, status=401)
    page = console.open(at("search", q=REFUND))
    expect(shortlist(page).get_by_text("The token has expired.")).to_be_visible()
    expect(sign(page)).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize("is_open", [False, True])
def test_the_link_of_the_terminal_signs_in_and_leaves_the_address(empty, opener, is_open):
    console = opener(empty.url)
    page = console.open("#/registry") if is_open else console.page
    page.goto(f"{empty.url}/#token={empty.token}")
    expect(sign(page, "Sign out")).to_be_visible()
    assert page.url == f"{empty.url}/"
    assert page.evaluate("sessionStorage['mats.token']") == empty.token


def test_one_can_sign_in_before_a_token_is_needed(empty, opener):
    page = opener(empty.url).open("#/search")
    sign(page).click()
    page.get_by_role("dialog", name="Sign in").get_by_role("textbox").fill(empty.token)
    page.keyboard.press("Enter")
    expect(sign(page, "Sign out")).to_be_visible()


def test_what_was_typed_before_signing_in_can_be_saved_after_it(empty, opener):
    console = opener(empty.url)
    console.forgive(r"status of 401 .*/registry/")
    page = console.open("#/edit")
    expect(page.get_by_text("Sign in first")).to_be_visible()
    for label, text in (("Namespace", "com.acme"), ("Name", "refund"), ("Description", "Give money back to a card")):
        page.get_by_label(re.compile(rf"^{label}( \(required\))?$")).fill(text)
    page.get_by_label(re.compile("^Kind")).select_option("tool")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("operator.token").first).to_be_visible()
    sign(page).click()
    dialog = page.get_by_role("dialog", name="Sign in")
    dialog.get_by_role("textbox").fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text(
        re.compile(r"^unknown token: paste the token in \S+operator\.token$")
    )
    dialog.get_by_role("textbox").fill(empty.token)
    page.keyboard.press("Enter")
    expect(sign(page, "Sign out")).to_be_visible()
    expect(page.get_by_text("Sign in first")).to_have_count(0)
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("1, active, of")).to_be_visible()


@pytest.fixture(scope="module")
def shared(browser_path, tmp_path_factory):
    """A service with a token for reading and one for writing."""
    folder = tmp_path_factory.mktemp("shared")
    mats = Mats(folder / "home")
    assert mats("import", "-", stdin=rows(tool("refund", description="Give money back for a card payment"))).code == 0
    make_tokens(mats.home, report="report-" * 8, write="write-" * 8)
    with serving(mats) as service:
        yield service


def test_a_token_that_may_only_read_is_told_what_it_may_not(opener, shared):
    console = opener(shared.url)
    console.forgive(r"status of 40[13] ")
    page = console.open("#/registry")
    for token, seen in (("report", "this token may only read"), ("write", "Register a capability")):
        expect(page.get_by_role("alert").first).to_contain_text("no token")
        sign(page).click()
        page.get_by_role("dialog", name="Sign in").get_by_label("A bearer token").fill(f"{token}-" * 8)
        page.keyboard.press("Enter")
        expect(page.get_by_text(seen).first).to_be_visible()
        page.goto(f"{console.url}/{at('search', q='give money back')}")
        expect(names(page).first).to_have_text("refund")
        page.goto(f"{console.url}/#/registry")
        expect(page.get_by_text(seen).first).to_be_visible()
        sign(page, "Sign out").click()
