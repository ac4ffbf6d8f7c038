"""The console over a service that asks for tokens: signing in to read, and to change the registry."""

import pytest
from playwright.sync_api import expect

from tests.console.pages import at, names, sign, unfold
from tests.integration.conftest import Mats, rows, serving, tool

READ, WRITE = "read-" * 8, "write-" * 8
QUESTION = "give money back"


@pytest.fixture(scope="module")
def shared(browser_path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    mats = Mats(folder / "home")
    assert mats("import", "-", stdin=rows(tool("refund", description="Give money back for a card payment"))).code == 0
    options = []
    for name, token in (("read", READ), ("write", WRITE)):
        (folder / name).write_text(token)
        options += [f"--{name}-token-file", str(folder / name)]
    with serving(mats, *options) as service:
        yield service


@pytest.fixture
def guarded(opener, shared):
    console = opener(shared)
    console.forgive(r"status of 40[13] ")
    return console


def sign_in(page, token):
    sign(page).click()
    page.get_by_role("dialog", name="Sign in").get_by_label("A bearer token of your issuer or of this service").fill(
        token
    )
    page.keyboard.press("Enter")
    expect(sign(page, "Sign out")).to_be_visible()


def test_the_read_token_searches_and_shows(guarded):
    page = guarded.open(at("search", q=QUESTION))
    expect(page.get_by_text("no token: send a token of this service").first).to_be_visible()
    sign_in(page, READ)
    expect(names(page).first).to_have_text("refund")
    unfold(page)
    names(page).first.click()
    expect(page.get_by_text("Give money back for a card payment").last).to_be_visible()
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    page.goto(f"{guarded.url}/#/registry")
    expect(page.get_by_text("Nothing to see or to change here: this token may only read").first).to_be_visible()
    page.goto(f"{guarded.url}/#/edit")
    expect(page.get_by_text("This service is read-only: see the Registry page")).to_be_visible()


def test_the_write_token_changes_the_registry(guarded, shared):
    page = guarded.open("#/registry")
    expect(page.get_by_role("alert")).to_contain_text("no token")
    sign_in(page, READ)
    expect(page.get_by_text("this token may only read").first).to_be_visible()
    sign(page, "Sign out").click()
    expect(page.get_by_role("alert")).to_contain_text("no token")
    sign_in(page, WRITE)
    expect(page.get_by_role("link", name="Register a capability")).to_be_visible()
    page.goto(f"{guarded.url}/#/edit?id=com.acme%2Frefund")
    page.get_by_label("Description").fill("Give money back for a card payment, also in part")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Revision 2")).to_be_visible()
