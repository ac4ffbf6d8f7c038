"""Every page and state for everybody: labels and contrast, narrow and wide, light and dark, keys and motion."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.accessibility import violations
from tests.console.browser import LOOKS, Looks
from tests.console.judged import ANSWER, ASKED
from tests.console.pages import (
    PAYPAL,
    REFUND,
    STRIPE,
    answered,
    at,
    box,
    cards,
    fulfil,
    names,
    panel,
    ready,
    reasons,
    scrolled_tables,
    shortlist,
    too_wide,
    unfold,
)  # fmt: skip

pytestmark = pytest.mark.server

everywhere = pytest.mark.parametrize("looks", LOOKS, ids=str)
NARROW = [looks for looks in LOOKS if looks.width < 400]


def fine(page):
    """Nothing is wrong with the page as it stands."""
    ready(page)
    assert violations(page) == []
    assert too_wide(page) == 0


@everywhere
def test_the_search_page(console):
    page = console.open()
    fine(page)
    page.goto(f"{console.url}/{at('search', q=REFUND)}")
    shortlist(page).get_by_text(re.compile(r"^\d+ results in")).click()
    for place in (0, 1):
        cards(page).nth(place).get_by_role("checkbox").check()
    fine(page)
    names(page).first.click()
    expect(panel(page).get_by_role("heading", name="Versions")).to_be_visible()
    for folded in panel(page).locator("summary").all():
        folded.click()
    fine(page)


@everywhere
def test_a_judged_answer_with_flags(console):
    page = console.open()
    fulfil(page, {**ANSWER, "verdict": "none", "degraded": ["neural"], "thresholds": {"match": 0.9, "weak": 0.5}})
    page.goto(f"{console.url}/{at('search', q=ASKED)}")
    expect(cards(page)).to_have_count(2)
    fine(page)
    unfold(page)
    for card in cards(page).all():
        reasons(card)
    fine(page)


@pytest.mark.parametrize("looks", [Looks(width=width) for width in (360, 480, 640, 768, 960, 1440, 1920)], ids=str)
def test_no_width_is_too_narrow_for_an_answer_and_its_panel(console):
    page = console.open(at("search", q=REFUND))
    expect(cards(page).first).to_be_attached()
    unfold(page)
    for card in cards(page).all()[:3]:
        reasons(card)
    ready(page)
    assert too_wide(page) == 0
    page.goto(f"{console.url}/{at('search', q=REFUND, open=STRIPE)}")
    ready(page)
    assert too_wide(page) == 0


@everywhere
def test_the_comparison(console):
    page = console.open(at("compare", q=REFUND, a=STRIPE, b=PAYPAL))
    expect(page.get_by_role("table")).to_be_visible()
    fine(page)
    page.goto(f"{console.url}/{at('compare', q=REFUND, a=STRIPE)}")
    fine(page)


@everywhere
def test_the_registry_page(opener, hostile, console):
    page = console.open("#/registry")
    fine(page)
    page.get_by_role("link", name=re.compile("Providers")).click()
    expect(page.get_by_role("heading", name="Exposure by provider")).to_be_visible()
    fine(page)
    page.get_by_role("link", name=re.compile("Sources")).click()
    expect(page.get_by_role("heading", name="Sources")).to_be_visible()
    fine(page)
    page.goto(f"{console.url}/{at('registry', open='com.deepwiki.mcp/ask_question')}")
    expect(panel(page).locator(".snippet summary")).to_have_count(3)
    for folded in panel(page).locator(".snippet summary").all():
        folded.click()
    expect(panel(page).get_by_text('"mcpServers"')).to_be_visible()
    fine(page)
    page = opener(hostile).open("#/registry?show=rejected")
    page.locator("a[data-id]").first.click()
    expect(panel(page).get_by_text("Rejected:")).to_be_visible()
    fine(page)


@everywhere
def test_the_pages_of_a_registry_in_use(console, sample):
    answer = answered(sample, REFUND)
    outcomes = [
        {"id": answer["results"][place]["id"], "event": event} for place, event in enumerate(("succeeded", "failed"))
    ]
    assert sample.request("/feedback", {"query_id": answer["query_id"], "outcomes": outcomes})[0] == 202
    for query in ("order a pizza with extra cheese", "order a pizza"):
        answered(sample, query)
    page = console.open("#/demand")
    expect(page.get_by_role("link", name="Register what serves this").first).to_be_visible()
    fine(page)
    page.goto(f"{console.url}/#/outcomes")
    expect(page.get_by_role("heading", name="Latest failures")).to_be_visible()
    fine(page)
    page.goto(f"{console.url}/#/search")
    expect(page.get_by_role("region", name="Asked for and not found").get_by_role("listitem").first).to_be_visible()
    fine(page)
    page.goto(f"{console.url}/#/import")
    page.get_by_label("Document").fill('{"namespace": "com.acme", "name": "pay", "kind": "tool"}\n{"name": "no"}')
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("Queries that find it").click()
    expect(page.get_by_role("heading", name="Its profile")).to_be_visible()
    fine(page)
    page.goto(f"{console.url}/{at('registry', ns='com.stripe.mcp', sort='-trust')}")
    page.get_by_text("Trust of com.stripe.mcp and all below it").click()
    page.get_by_role("checkbox", name="Select all that are listed").check()
    expect(page.get_by_role("form", name="With the selected")).to_be_visible()
    fine(page)


@pytest.mark.parametrize("looks", [Looks(width=width) for width in (360, 480, 640, 768, 960, 1440, 1920)], ids=str)
def test_no_width_is_too_narrow_for_any_page(console):
    page = console.open()
    for address in ("#/search", "#/registry", "#/demand", "#/outcomes", "#/import", "#/edit", "#/evaluation"):
        page.goto(f"{console.url}/{address}")
        ready(page)
        assert (address, too_wide(page)) == (address, 0)


@everywhere
def test_the_form(console):
    page = console.open("#/edit")
    fine(page)
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("is required").first).to_be_visible()
    page.get_by_text("More", exact=True).click()
    fine(page)
    page.goto(f"{console.url}/{at('edit', id=STRIPE)}")
    expect(page.get_by_role("heading", name="Queries that should find it")).to_be_visible()
    for folded in page.get_by_role("region", name="Preview of this registration").locator("summary").all():
        folded.click()
    fine(page)
    page.get_by_role("button", name="Remove").click()
    fine(page)


@everywhere
def test_the_evaluation_page(console):
    page = console.open("#/evaluation")
    expect(page.get_by_role("heading", level=2).last).to_be_visible()
    for folded in page.get_by_role("main").locator("summary").all():
        folded.click()
    fine(page)
    assert scrolled_tables(page) == []


def test_every_table_of_the_report_fits_at_any_width(console):
    page = console.open("#/evaluation")
    expect(page.get_by_role("heading", level=2).last).to_be_visible()
    for folded in page.get_by_role("main").locator("summary").all():
        folded.click()
    for width in range(360, 1921, 60):
        page.set_viewport_size({"width": width, "height": 800})
        assert (width, scrolled_tables(page)) == (width, [])


@everywhere
def test_dialogs_and_notices(console):
    console.forgive(r"status of 401 .*/discover|net::ERR_FAILED .*/registry")
    page = console.open()
    page.get_by_role("button", name="Keys").click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    fine(page)
    page.keyboard.press("Escape")
    fulfil(page, {"detail": "A token is needed."}, status=401)
    page.goto(f"{console.url}/{at('search', q=REFUND)}")
    expect(shortlist(page).get_by_text("A token is needed.")).to_be_visible()
    fine(page)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()
    fine(page)
    page.keyboard.press("Escape")
    page.route("**/registry", lambda route: route.abort())
    page.get_by_role("link", name="Registry").click()
    expect(page.get_by_role("alert")).to_be_visible()
    fine(page)


def test_chosen_theme_overrides_the_systems_and_is_stored(opener, sample):
    page = opener(sample).open()
    assert [paper(page), press_theme(page), press_theme(page), press_theme(page)] == [
        "light", "Theme: light light", "Theme: dark dark", "Theme: system light",
    ]  # fmt: skip
    press_theme(page)
    press_theme(page)
    page.reload()
    expect(box(page)).to_be_focused()
    assert paper(page) == "dark"
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()


@pytest.mark.parametrize("looks", [Looks(scheme="dark")], ids=str)
def test_a_dark_system_gets_a_light_page_if_one_is_chosen(console):
    page = console.open()
    assert paper(page) == "dark"
    assert press_theme(page) == "Theme: light light"


def press_theme(page):
    button = page.get_by_role("button", name="Theme")
    button.press("Enter")
    return f"{button.text_content()} {paper(page)}"


def paper(page):
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return "light" if sum(map(int, re.findall(r"\d+", colour)[:3])) > 380 else "dark"


@pytest.mark.parametrize(
    "address",
    [
        at("search", q=REFUND),
        at("search", q=REFUND, open=STRIPE),
        at("compare", q=REFUND, a=STRIPE, b=PAYPAL),
        at("registry", q="com.stripe"),
        "#/demand",
        "#/outcomes",
        "#/import",
        "#/edit",
    ],
    ids=["answer", "panel", "compare", "registry", "demand", "outcomes", "import", "form"],
)
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
    expect(page.get_by_role("link", name="Import")).to_be_focused()


def test_what_has_the_focus_is_seen_to_have_it(console):
    page = console.open(at("search", q=REFUND))
    expect(cards(page).first).to_be_visible()
    page.keyboard.press("j")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize(("looks", "moves"), [(Looks(still=True), False), (Looks(), True)], ids=str)
def test_nothing_moves_with_reduced_motion(console, moves):
    page = console.open(at("search", q=REFUND, open=STRIPE))
    ready(page)
    seconds = page.evaluate(
        "() => [...document.querySelectorAll('*')].flatMap((one) => { const style = getComputedStyle(one);"
        " return [style.transitionDuration, style.animationDuration]; })"
    )
    assert any(float(one.rstrip("s")) > 0 for text in seconds for one in text.split(", ")) is moves


@pytest.mark.parametrize("looks", NARROW, ids=str)
def test_the_panel_covers_a_narrow_page_and_goes_away_again(console):
    page = console.open(at("search", q=REFUND))
    names(page).nth(1).click()
    expect(panel(page).get_by_role("heading", level=2)).to_be_in_viewport()
    page.get_by_role("button", name="Close details").click()
    expect(panel(page)).to_have_count(0)
    expect(names(page).nth(1)).to_be_focused()
    expect(names(page).nth(1)).to_be_in_viewport()
