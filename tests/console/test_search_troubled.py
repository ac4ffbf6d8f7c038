"""Asking a service that fails, is slow, or is asked too much."""

import json
import re

from playwright.sync_api import expect

from tests.console.pages import (
    REFUND,
    STRIPE,
    answered,
    at,
    box,
    calm,
    cards,
    find,
    names,
    panel,
    questions,
    shortlist,
)  # fmt: skip


def test_missing_answer_is_reported_and_the_next_one_is_shown(console):
    console.forgive(r"net::ERR_FAILED .*/discover")
    page = console.open()
    page.route("**/discover", lambda route: route.abort())
    box(page).fill(REFUND)
    box(page).press("Enter")
    expect(shortlist(page).get_by_text("The service does not answer: check that it is running.")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("The service does not answer: check that it is running.")
    page.unroute("**/discover")
    page.get_by_role("button", name="Find").click()
    expect(names(page).first).to_have_text("create_refund")
    expect(page.get_by_text("The service does not answer")).to_have_count(0)


def test_rejected_query_shows_its_faults(console):
    console.forgive(r"status of 422 .*/discover")
    page = console.open(at("search", q="refund " * 400))
    expect(shortlist(page).get_by_role("listitem")).to_contain_text("query must have at most")
    find(page, REFUND)
    expect(names(page).first).to_have_text("create_refund")


def test_a_slow_answer_does_not_come_over_a_later_one(console, sample):
    page = console.open()
    slow = []

    def hold(route):
        if REFUND in (route.request.post_data or ""):
            slow.append(route)
        else:
            route.continue_()

    page.route("**/discover", hold)
    box(page).fill(REFUND)
    with page.expect_request("**/discover"):
        box(page).press("Enter")
    expect(shortlist(page)).to_have_attribute("aria-busy", "true")
    find(page, "speak a text aloud")
    slow[0].fulfill(json=answered(sample, REFUND))
    later = [one["name"] for one in answered(sample, "speak a text aloud")["results"]]
    calm(page)
    expect(names(page)).to_have_text(later)
    expect(box(page)).to_have_value("speak a text aloud")


def test_looking_at_results_asks_nothing_again(console):
    page = console.open()
    asked = questions(page)
    find(page, REFUND)
    names(page).first.click()
    expect(panel(page).get_by_text(STRIPE, exact=True)).to_be_visible()
    names(page).nth(1).click()
    expect(panel(page).get_by_text(STRIPE, exact=True)).to_have_count(0)
    page.keyboard.press("Escape")
    for place in (0, 1):
        cards(page).nth(place).get_by_role("checkbox").check()
    page.get_by_role("link", name="Why is 1 above 2?").click()
    expect(page).to_have_url(re.compile(r"#/compare\?q=refund.*a=com\.stripe.*b=com\.paypal"))
    expect(page.get_by_role("table")).to_be_visible()
    page.get_by_role("link", name="← The shortlist").click()
    expect(cards(page).first).to_be_visible()
    assert [json.loads(one.post_data)["query"] for one in asked] == [REFUND]


def test_pages_of_an_empty_registry_say_what_fills_them(blank):
    page = blank.open("#/search")
    for route, told in (
        ("registry", "None."),
        ("use", "No answers yet."),
        ("search", "Nothing is registered yet. Import a document."),
    ):
        page.goto(f"{blank.url}/#/{route}")
        expect(page.get_by_role("main").get_by_text(told).last).to_be_visible()
    page.goto(f"{blank.url}/{at('search', q=REFUND)}")
    expect(shortlist(page).get_by_text("None No capability matches.")).to_be_visible()
    expect(shortlist(page).get_by_text("0 results in")).to_be_visible()
