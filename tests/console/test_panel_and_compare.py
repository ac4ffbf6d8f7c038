"""One capability beside the list, and two side by side."""

import re

import pytest
from playwright.sync_api import expect

from tests.builders import an_item
from tests.console.pages import (
    PAYPAL,
    REFUND,
    STRIPE,
    answered,
    at,
    fulfil,
    names,
    panel,
    put,
    told,
)  # fmt: skip

PAIR = at("compare", q=REFUND, a=STRIPE, b=PAYPAL)
NUMBER = re.compile(r"[−+]?\d+\.\d+$")


def value(page, section, name):
    """The value of a name in a section of the panel."""
    part = panel(page).locator("section").filter(has=page.get_by_role("heading", level=3, name=section, exact=True))
    term = part.locator("dl").first.get_by_text(name, exact=True)
    return term.locator("xpath=following-sibling::dd[1]")


def number(text):
    return float(NUMBER.search(text.strip())[0].replace("−", "-"))


def test_the_panel_shows_the_registration_as_it_was_made(console, sample):
    page = console.open(at("search", q=REFUND, open=STRIPE))
    registration = told(sample, f"/registry/capabilities/{STRIPE}")["registration"]
    expect(panel(page).get_by_role("heading", level=2)).to_have_text("create_refund")
    for name in ("namespace", "name", "kind", "description", "provider", "endpoint"):
        expect(value(page, "Registration", name)).to_have_text(registration[name])
    expect(value(page, "Registration", "tags").get_by_role("listitem")).to_have_text(registration["tags"])
    expect(value(page, "Registration", "examples").get_by_role("listitem")).to_have_text(registration["examples"])
    schema = panel(page).get_by_text('"payment_intent": {')
    expect(schema).to_be_hidden()
    panel(page).get_by_text("input_schema", exact=True).click()
    expect(schema).to_be_visible()


def test_the_panel_shows_the_fields_it_is_found_by_with_what_matched(console, sample):
    page = console.open(at("search", q=REFUND, open=STRIPE))
    fields = told(sample, f"/registry/capabilities/{STRIPE}")["profile"]["enrichment"]
    expect(panel(page).get_by_text("Not enriched by an LLM: the owner's own text.")).to_be_visible()
    expect(value(page, "How it is found", "summary")).to_have_text(fields["summary"])
    expect(value(page, "How it is found", "summary").get_by_role("mark")).to_have_text(["payment"])
    expect(value(page, "How it is found", "keywords").get_by_role("listitem")).to_have_text(fields["keywords"])
    asked_for = value(page, "How it is found", "example requests")
    expect(asked_for.get_by_role("listitem")).to_have_text(fields["positive_examples"])
    expect(value(page, "How it is found", "don't use for")).to_contain_text(fields["negative_examples"][0])
    expect(value(page, "How it is found", "trust")).to_have_text("88 of 100")


def test_the_panel_shows_the_reliability_with_its_interval(blank, empty):
    put(empty, an_item())
    answer = answered(empty, "refund a card payment")
    for event in ("selected", "succeeded"):
        outcomes = [{"id": answer["results"][0]["id"], "event": event}]
        assert empty.request("/feedback", {"query_id": answer["query_id"], "outcomes": outcomes})[0] == 202
    page = blank.open(at("registry", open="com.acme.pay/refund_payment"))
    expect(value(page, "How it is found", "reliability")).to_contain_text(
        re.compile(r"^\d+ % \(95 % interval \d+ % to \d+ %\): 1\.0 successes and 0\.0 failures reported")
    )


def test_every_version_is_listed_with_what_it_changed(blank, empty):
    first = an_item(description="Gives money back to the card it came from, whole or in part.")
    for item in (first, {**first, "description": "Returns money to a card.", "tags": ["money"]}):
        put(empty, item)
    page = blank.open(at("registry", open="com.acme.pay/refund_payment"))
    versions = panel(page).locator("section").filter(has_text="revisions, newest first").locator("ol > li")
    expect(versions).to_contain_text(["Revision 2", "Revision 1"])
    expect(versions.nth(0)).to_contain_text("description")
    expect(versions.nth(0)).to_contain_text("tags")
    expect(versions.nth(1)).to_contain_text("the first")


def test_focus_moves_into_the_panel_and_back_to_its_link(console):
    page = console.open(at("search", q=REFUND))
    for away in (
        lambda: page.keyboard.press("Escape"),
        lambda: panel(page).get_by_role("button", name="Close details").click(),
        page.go_back,
    ):
        names(page).nth(1).press("Enter")
        expect(panel(page).get_by_role("heading", level=2)).to_be_focused()
        expect(panel(page).get_by_text(PAYPAL, exact=True)).to_be_visible()
        away()
        expect(panel(page)).to_have_count(0)
        expect(names(page).nth(1)).to_be_focused()


def test_the_differences_of_the_signals_make_the_difference_of_the_scores(console, sample):
    page = console.open(PAIR)
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Why is {STRIPE} above {PAYPAL}?")
    expect(page.get_by_role("table")).to_be_visible()
    rows = [row.get_by_role("cell").all_text_contents() for row in page.get_by_role("row").all()[2:]]
    *signals, score = rows
    upper, lower = (
        next(one for one in answered(sample, REFUND)["results"] if one["id"] == id) for id in (STRIPE, PAYPAL)
    )
    shown = [number(cell) for cell in score if NUMBER.search(cell)]
    assert shown[:2] == pytest.approx([upper["score"], lower["score"]], abs=0.0005)
    assert shown[2] == pytest.approx(shown[0] - shown[1], abs=0.0011)
    differences = [number(row[-1]) for row in signals]
    assert len(differences) == 3
    assert sum(differences) == pytest.approx(shown[2], abs=0.0005 * len(differences) + 0.0005)
    expect(page.get_by_text(re.compile(rf"It scores {shown[2]:.3f} higher\. For it: "))).to_be_visible()


@pytest.mark.parametrize(
    ("address", "notice"),
    [
        (at("compare", q=REFUND, a=STRIPE, b="com.nobody/nothing"), "Not on this shortlist: com.nobody/nothing."),
        (at("compare", q=REFUND, a=STRIPE), "Not on this shortlist: nothing."),
        (at("compare", a=STRIPE, b=PAYPAL), "No query: pick two results of a search."),
    ],
)
def test_pair_that_cannot_be_compared_is_reported(console, address, notice):
    page = console.open(address)
    expect(page.get_by_text(notice)).to_be_visible()
    page.get_by_role("link", name="← The shortlist").click()
    expect(page).to_have_url(re.compile("#/search"))


def test_of_equals_the_order_is_explained(console, sample):
    page = console.open()
    answer = answered(sample, REFUND)
    first, second = answer["results"][:2]
    second.update({key: first[key] for key in ("score", "signals", "weights")})
    second["lifecycle"] = "deprecated"
    fulfil(page, answer)
    page.goto(f"{console.url}/{PAIR}")
    expect(page.get_by_text("Equal scores: an active capability ranks before a deprecated one.")).to_be_visible()
