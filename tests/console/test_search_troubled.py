"""Asking a service that fails, is slow, or is asked too much."""

import json

import pytest
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
    fulfil,
    held,
    names,
    panel,
    questions,
    ready,
    shortlist,
)  # fmt: skip
from tests.integration.conftest import Mats, serving

pytestmark = pytest.mark.server

OUT = {"type": "about:blank", "title": "Service Unavailable", "status": 503, "detail": "the index cannot be read now"}


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


def test_stopped_service_is_reported_at_the_next_query(opener, tmp_path):
    with serving(Mats(tmp_path / "home"), "--sample") as service:
        console = opener(service)
        console.forgive("ERR_CONNECTION_REFUSED")
        page = console.open(at("search", q=REFUND))
        expect(cards(page).first).to_be_visible()
    page.get_by_role("button", name="Find").click()
    expect(shortlist(page).get_by_text("The service does not answer: check that it is running.")).to_be_visible()
    expect(cards(page)).to_have_count(0)
    page.get_by_role("link", name="Registry").click()
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer: check that it is running.")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


@pytest.mark.parametrize("status", [503, 429])
def test_error_message_of_the_service_is_shown(console, status):
    console.forgive(rf"status of {status} .*/discover")
    page = console.open()
    fulfil(page, {**OUT, "status": status}, status=status)
    box(page).fill(REFUND)
    box(page).press("Enter")
    expect(shortlist(page).get_by_text("the index cannot be read now")).to_be_visible()
    page.unroute("**/discover")
    box(page).press("Enter")
    expect(names(page).first).to_have_text("create_refund")


def test_answer_that_is_not_json_is_reported(console):
    page = console.open()
    page.route("**/discover", lambda route: route.fulfill(status=200, content_type="text/html", body="<h1>Proxy</h1>"))
    box(page).fill(REFUND)
    box(page).press("Enter")
    expect(shortlist(page).get_by_text("The service's answer is not JSON.")).to_be_visible()


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


def test_an_answer_that_comes_when_nothing_is_asked_any_more_is_not_shown(console):
    page = console.open("#/evaluation")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    waiting = held(page, "**/healthz")
    with page.expect_response("**/discover"):
        page.goto(f"{console.url}/{at('search', q=REFUND)}")
    page.goto(f"{console.url}/#/search")
    expect(page.get_by_text("Describe the task in your own words.")).to_be_visible()
    waiting[0].continue_()
    calm(page)
    expect(cards(page)).to_have_count(0)
    expect(box(page)).to_have_value("")


@pytest.mark.parametrize(("where", "what"), [("evaluation", "**/report.json"), ("registry", "**/registry")])
def test_a_page_that_comes_late_does_not_come_over_another(console, where, what):
    page = console.open()
    ready(page)
    calm(page)  # the home page asks for the registry, too
    waiting = held(page, what, times=1)
    with page.expect_request(what):
        page.get_by_role("link", name=where.capitalize(), exact=True).click()
    page.get_by_role("link", name="Search", exact=True).click()
    expect(box(page)).to_be_focused()
    waiting[0].abort()
    console.forgive("net::ERR_FAILED")
    calm(page)
    expect(box(page)).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


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
    expect(page.get_by_role("table")).to_be_visible()
    page.get_by_role("link", name="← The shortlist").click()
    expect(cards(page).first).to_be_visible()
    assert [json.loads(one.post_data)["query"] for one in asked] == [REFUND]


def test_failed_lookup_is_reported_beside_the_list(console):
    console.forgive(r"status of 404 .*nobody")
    page = console.open(at("search", q=REFUND, open="com.nobody/nothing"))
    expect(panel(page).get_by_text("com.nobody/nothing").last).to_be_visible()
    expect(cards(page).first).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel(page)).to_have_count(0)


def test_empty_registry_shows_that_nothing_matches(blank):
    page = blank.open(at("search", q=REFUND))
    expect(shortlist(page).get_by_text("None No capability matches.")).to_be_visible()
    expect(shortlist(page).get_by_text("0 results in")).to_be_visible()
    expect(cards(page)).to_have_count(0)
    page.goto(f"{blank.url}/#/registry")
    expect(page.get_by_role("link", name="0 All")).to_be_visible()
    expect(page.get_by_text("None.", exact=True)).to_be_visible()
    page.goto(f"{blank.url}/#/registry?view=exposure")
    expect(page.get_by_role("heading", name="Exposure by provider")).to_be_visible()
