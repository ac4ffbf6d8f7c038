"""Saying who one is, where the service wants to know."""

import re

import pytest
from playwright.sync_api import expect

from tests.command import make_tokens
from tests.console.pages import (
    REFUND,
    answered,
    at,
    cards,
    fulfil,
    names,
    shortlist,
    sign,
)  # fmt: skip
from tests.integration.conftest import Mats, rows, serving, tool


@pytest.fixture
def console(opener, sample):
    """The console without a token."""
    return opener(sample.url)


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


def test_pasted_token_is_stored_in_the_tab_only(console, refused):
    page, sent = refused()
    sign(page).click()
    dialog = page.get_by_role("dialog", name="Sign in")
    field = dialog.get_by_label("A bearer token of this service")
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
    page.get_by_role("dialog").get_by_label("A bearer token of this service").fill("mine")
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
