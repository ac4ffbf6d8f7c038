"""Twenty thousand capabilities, and the same pages."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.pages import answered, at, box, cards, names, panel, ready, shortlist, told, too_wide, unfold

pytestmark = [pytest.mark.server, pytest.mark.slow]


def rows(page):
    return page.get_by_role("main").get_by_role("row").filter(has=page.locator("a[data-id]"))


@pytest.fixture
def many(opener, crowd):
    return opener(crowd)


def test_the_counts_are_whole(many, crowd):
    page = many.open("#/registry")
    overview = told(crowd, "/registry")
    assert overview["registered"] == 20_000
    expect(page.get_by_role("link", name=re.compile("^20,000 ?All$"))).to_be_visible()
    expect(page.get_by_text("20,000 registrations in")).to_contain_text("20,000 findable")
    for kind, count in overview["kinds"].items():
        expect(page.get_by_role("checkbox", name=f"{kind} {count:,}")).to_be_attached()


def test_list_continues_on_scrolling(many, crowd):
    page = many.open("#/registry")
    expect(rows(page)).to_have_count(50)
    for so_far in (50, 100, 150):
        rows(page).last.scroll_into_view_if_needed()
        expect(rows(page).nth(so_far)).to_be_attached()
    ids = rows(page).locator("a").evaluate_all("(all) => all.map((one) => one.dataset.id)")
    assert len(ids) > 150
    first, following = [], None
    while len(first) < len(ids):
        page_of_list = told(crowd, f"/registry/capabilities?limit=200{f'&after={following}' if following else ''}")
        first += [one["id"] for one in page_of_list["capabilities"]]
        following = page_of_list["following"]
    assert ids == first[: len(ids)]
    assert too_wide(page) == 0


def test_a_filter_finds_the_last_of_them(many, crowd):
    page = many.open("#/registry")
    some = told(crowd, "/registry/capabilities?limit=200&kind=skill")["capabilities"][-1]
    page.keyboard.press("/")
    page.keyboard.type(some["id"])
    expect(rows(page).first).to_contain_text(some["name"])
    expect(rows(page)).to_have_count(told(crowd, f"/registry/capabilities?q={some['id']}")["total"])


def test_a_question_is_answered_and_its_results_opened_and_compared(many, crowd):
    some = told(crowd, "/registry/capabilities?limit=1&kind=tool")["capabilities"][0]
    query = some["summary"]
    page = many.open()
    box(page).fill(query)
    box(page).press("Enter")
    results = answered(crowd, query)["results"]
    expect(names(page)).to_have_text([one["name"] for one in results])
    expect(shortlist(page).get_by_text("No encoder configured.")).to_be_visible()
    unfold(page)
    names(page).first.click()
    expect(panel(page).get_by_text(results[0]["id"], exact=True)).to_be_visible()
    page.goto(f"{many.url}/{at('compare', q=query, a=results[0]['id'], b=results[1]['id'])}")
    expect(page.get_by_role("table")).to_be_visible()
    ready(page)


def test_kinds_narrow_twenty_thousand(many, crowd):
    page = many.open(at("registry", kind="model"))
    total = told(crowd, "/registry/capabilities?kind=model")["total"]
    expect(page.get_by_role("heading", level=2)).to_have_text(re.compile(f"^{total:,} capabilities"))
    expect(cards(page)).to_have_count(0)
