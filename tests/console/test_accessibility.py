"""Every page and state for everybody: labels and contrast, narrow and wide, light and dark, keys and motion."""

import re

import pytest
from playwright.sync_api import expect

from tests.builders import an_item
from tests.console import homes
from tests.console.accessibility import violations
from tests.console.browser import LOOKS, Looks
from tests.console.pages import (
    REFUND,
    STRIPE,
    answered,
    at,
    cards,
    fulfil,
    hold,
    names,
    panel,
    ready,
    shortlist,
    too_wide,
    unfold,
    unfold_all,
)  # fmt: skip
from tests.console.test_search import ANSWER, ASKED
from tests.integration.conftest import Mats, serving

ADDRESSES = {
    "answer": at("search", q=REFUND),
    "panel": at("search", q=REFUND, open=STRIPE),
    "registry": at("registry", ns="com.stripe.mcp", sort="-trust"),
    "review": "#/review",
    "use": "#/use",
    "import": "#/import",
    "form": "#/edit",
}


def an_answer(page):
    shortlist(page).get_by_text(re.compile(r"^\d+ results in")).click()
    unfold_all(cards(page).first)


def a_panel(page):
    expect(panel(page).get_by_role("heading", name="Registration")).to_be_visible()
    unfold_all(panel(page))


def a_filled_import(page):
    page.get_by_label("Document").fill('{"namespace": "com.acme", "name": "pay", "kind": "tool"}\n{"name": "no"}')
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Preview of this import")).to_be_visible()


def a_trusted_namespace(page):
    page.get_by_text("Trust of com.stripe.mcp and all below it").click()


def a_change(page):
    expect(page.get_by_role("table")).to_be_visible()
    page.get_by_role("button", name="Approve").click()


def a_form_with_faults(page):
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("is required").first).to_be_visible()
    page.get_by_text("More", exact=True).click()


def a_form_with_a_preview(page):
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Queries that should find it")).to_be_visible()
    unfold_all(page.get_by_role("region", name="Preview of this registration"))
    page.get_by_role("button", name="Remove").click()


STATES = {
    "#/search": lambda page: None,
    ADDRESSES["answer"]: an_answer,
    ADDRESSES["panel"]: a_panel,
    ADDRESSES["registry"]: a_trusted_namespace,
    ADDRESSES["review"]: a_change,
    ADDRESSES["use"]: lambda page: None,
    ADDRESSES["import"]: a_filled_import,
    ADDRESSES["form"]: a_form_with_faults,
    at("edit", id=STRIPE): a_form_with_a_preview,
}
WIDTHS = (480, 641, 960, 1280, 360)  # Above 360, 40 rem and 60 rem a page has the least room


def faults(page):
    """Those of the page as it stands: where it is too wide, and what axe finds in every look."""
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        ready(page)
        found += [f"{wide} pixels too wide for {width}"] if (wide := too_wide(page)) else []
    for looks in reversed(LOOKS):  # the first is as it was
        page.set_viewport_size({"width": looks.width, "height": looks.height})
        page.emulate_media(color_scheme=looks.scheme, forced_colors="active" if looks.forced else "none")
        ready(page)
        found += [f"{looks}: {one}" for one in violations(page)]
    return found


@pytest.fixture(scope="module")
def in_use(browser_path, tmp_path_factory):
    """A sample registry with outcomes and a held change."""
    mats = Mats(tmp_path_factory.mktemp("in-use") / "home", homes.encoder_at_hand())
    with serving(mats, "--sample") as service:
        answer = answered(service, REFUND)
        outcomes = [
            {"id": one["id"], "event": event}
            for one, event in zip(answer["results"], ("succeeded", "failed"), strict=False)
        ]
        assert service.request("/feedback", {"query_id": answer["query_id"], "outcomes": outcomes})[0] == 202
        for _ in range(2):
            answered(service, "order a pizza with extra cheese")
        hold(service, an_item(endpoint="https://acme.example"), endpoint="https://evil.example/pay", description="")
        yield service


def test_every_page_and_state_is_accessible(opener, in_use, hostile):
    console = opener(in_use)
    console.forgive(r"status of 422 .*/registry/capabilities/%2F")
    console.page.on("dialog", lambda dialog: dialog.accept())
    found = {}
    for address, act in STATES.items():
        page = console.open(address)
        act(page)
        found[f"{address}, {act.__name__}"] = faults(page)
    page = opener(hostile).open("#/registry?show=rejected")
    page.locator("a[data-id]").first.click()
    expect(panel(page).get_by_text("Rejected:")).to_be_visible()
    found["rejected"] = faults(page)
    assert {state: lines for state, lines in found.items() if lines} == {}


def test_flags_dialogs_and_notices_are_accessible(console):
    console.forgive(r"status of 401 .*/discover|net::ERR_FAILED .*/registry")
    page = console.open()
    fulfil(page, {**ANSWER, "verdict": "none", "degraded": ["neural"], "thresholds": {"match": 0.9, "weak": 0.5}})
    page.goto(f"{console.url}/{at('search', q=ASKED)}")
    expect(cards(page)).to_have_count(2)
    unfold(page)
    unfold_all(cards(page).first)
    found = faults(page)
    page.unroute("**/discover")
    fulfil(page, {"detail": "A token is needed."}, status=401)
    page.goto(f"{console.url}/{at('search', q=REFUND)}")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()
    found += faults(page)
    page.keyboard.press("Escape")
    page.route("**/registry", lambda route: route.abort())
    page.get_by_role("link", name="Registry").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert found + faults(page) == []


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_the_tab_key_reaches_everything(console, address):
    page = console.open(address)
    ready(page)
    can = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
          .filter((one) => one.checkVisibility() && !one.disabled).length"""
    )
    page.evaluate("() => { document.activeElement.blur(); window.__tabbed = new Set(); }")
    for _ in range(can + 5):
        page.keyboard.press("Tab")
        page.evaluate("() => document.activeElement !== document.body && window.__tabbed.add(document.activeElement)")
    reached = page.evaluate("() => window.__tabbed.size")
    assert reached == can


def test_the_first_tab_stop_leads_past_the_header(console):
    page = console.open("#/registry")
    ready(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Registry")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Register a capability")).to_be_focused()


def test_what_has_the_focus_is_seen_to_have_it(console):
    page = console.open(at("search", q=REFUND))
    expect(cards(page).first).to_be_visible()
    page.keyboard.press("j")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("looks", [Looks(width=360, height=740)], ids=str)
def test_the_panel_covers_a_narrow_page_and_goes_away_again(console):
    page = console.open(at("search", q=REFUND))
    names(page).nth(1).click()
    expect(panel(page).get_by_role("heading", level=2)).to_be_in_viewport()
    page.get_by_role("button", name="Close details").click()
    expect(panel(page)).to_have_count(0)
    expect(names(page).nth(1)).to_be_focused()
    expect(names(page).nth(1)).to_be_in_viewport()
