"""Asking, narrowing, what stands with each result, and a service that fails or is slow."""

import copy
import re

import pytest
from playwright.sync_api import expect

from tests.console.pages import (
    PAYPAL,
    REFUND,
    STRIPE,
    answered,
    at,
    box,
    calm,
    cards,
    find,
    fulfil,
    names,
    panel,
    shortlist,
    signals,
    unfold,
)  # fmt: skip

ASKED = "give a customer the money back"
FIRST = {
    "id": "com.acme.pay/createRefund", "kind": "tool", "name": "createRefund", "namespace": "com.acme.pay",
    "version": "2.1", "score": 0.9123,
    "signals": {"llm": 0.95, "bm25": 0.4, "quality": 0.9, "intent": 1.0},
    "weights": {"llm": 0.5, "bm25": 0.05, "quality": 0.3, "intent": 0.15},
    "relevance": 0.95, "summary": "Gives money back to a customer's card; customers like it.",
    "endpoint": "https://acme.example", "provider": "Acme", "lifecycle": "active", "enriched": True,
    "suspicious": [],
    "why": {"matched": ["customer", "money"], "fields": ["description", "positive_examples"],
            "spelled": ["customers", "money"]},
}  # fmt: skip
SECOND = {
    **FIRST, "id": "com.acme.old/pay_back", "name": "pay_back", "namespace": "com.acme.old", "version": "",
    "score": 0.5, "signals": {"llm": 0.4, "bm25": 0.1}, "weights": {"llm": 0.9091, "bm25": 0.0909},
    "relevance": 0.4, "summary": "", "provider": "", "lifecycle": "deprecated", "enriched": False,
    "suspicious": ["contains bidirectional control characters"], "why": None,
}  # fmt: skip
ANSWER = {
    "query_id": "0123456789abcdef0123456789abcdef", "verdict": "match", "intent": "payments", "degraded": [],
    "results": [FIRST, SECOND],
    "took_ms": {"queue": 1.0, "encode": 7.5, "lexical": 2.0, "neural": 3.0, "fetch": 4.0, "measure": 5.0,
                "rerank": 812.5, "total": 840.2},
    "cost": {"input_tokens": 2345, "output_tokens": 67, "usd": 0.001234},
    "versions": {"index": "opensearch-1", "prompt": "abc", "models": {"embed": "titan-v2", "rerank": "nova-lite"}},
}  # fmt: skip
"""An answer that an LLM judged: one result that stands out, one that wants a second look."""


def shown(console, **changes):
    """The console over that answer with these changes."""
    page = console.open()
    fulfil(page, {**copy.deepcopy(ANSWER), **changes})
    page.goto(f"{console.url}/{at('search', q=ASKED)}")
    expect(page.get_by_role("status")).to_contain_text("result")
    return page


def test_a_question_is_asked_and_its_list_walked_by_keyboard_alone(console, sample):
    page = console.open()
    expect(box(page)).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("/")
    expect(box(page)).to_be_focused()
    page.keyboard.type(REFUND)
    page.keyboard.press("Enter")
    results = answered(sample, REFUND)["results"]
    expect(names(page)).to_have_text([result["name"] for result in results])
    expect(page).to_have_url(re.compile(r"#/search\?q=refund\+a\+card\+payment$"))
    expect(page).to_have_title(f"{REFUND} · mats")
    expect(page.get_by_role("status")).to_contain_text("match: ")
    unfold(page)
    page.evaluate("document.activeElement.blur()")
    for key, place in (("j", 0), ("j", 1), ("j", 2), ("k", 1), ("k", 0), ("k", 0), ("j", 1)):
        page.keyboard.press(key)
        expect(names(page).nth(place)).to_be_focused()
    page.keyboard.press("Enter")
    expect(panel(page).get_by_role("heading", level=2)).to_be_focused()
    expect(panel(page).get_by_text(results[1]["id"], exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel(page)).to_have_count(0)
    expect(names(page).nth(1)).to_be_focused()


def test_kinds_and_namespaces_narrow_the_answer_and_are_in_the_address(console, sample):
    page = console.open(at("search", q=REFUND))
    for kind in ("agent", "skill"):
        page.get_by_role("checkbox", name=kind, exact=True).press("Space")
    both = answered(sample, REFUND, kinds=["agent", "skill"])["results"]
    expect(names(page)).to_have_text([one["name"] for one in both])
    expect(page).to_have_url(re.compile(r"q=refund\+a\+card\+payment&kind=agent&kind=skill$"))
    for kind in ("agent", "skill"):
        page.get_by_role("checkbox", name=kind, exact=True).uncheck()
    page.get_by_label("Namespace").fill("com.stripe.mcp, com.paypal.mcp")
    page.get_by_label("Namespace").press("Enter")
    narrowed = answered(sample, REFUND, namespaces=["com.stripe.mcp", "com.paypal.mcp"])["results"]
    expect(names(page)).to_have_text([one["name"] for one in narrowed])
    expect(page).to_have_url(re.compile(r"&ns=com\.stripe\.mcp&ns=com\.paypal\.mcp$"))


def test_an_address_brings_everything_back(console):
    page = console.open(at("search", q=REFUND, kind=["tool", "agent"], ns="com.paypal.mcp", open=PAYPAL))
    expect(box(page)).to_have_value(REFUND)
    for kind in ("tool", "agent"):
        expect(page.get_by_role("checkbox", name=kind, exact=True)).to_be_checked()
    expect(page.get_by_role("checkbox", name="model", exact=True)).not_to_be_checked()
    expect(page.get_by_label("Namespace")).to_have_value("com.paypal.mcp")
    expect(panel(page).get_by_text(PAYPAL, exact=True)).to_be_visible()


def test_a_result_shows_its_signals_reasons_and_warnings(console):
    page = shown(console)
    first, second = cards(page).nth(0), cards(page).nth(1)
    expect(shortlist(page).get_by_text("It looks for: payments.")).to_be_visible()
    expect(signals(first)).to_have_text([
        "Reranker, weight 50 %0.95adds 0.47", "Words (BM25), weight 5 %0.40adds 0.02",
        "Trust, weight 30 %0.90adds 0.27", "Type asked for, weight 15 %1.00adds 0.15",
    ])  # fmt: skip
    expect(signals(second)).to_have_text([
        "Reranker, weight 50 → 91 %0.40adds 0.36", "Words (BM25), weight 5 → 9 %0.10adds 0.01",
        "Trust, weight 30 %absent: no trust given", "Type asked for, weight 15 %absent: no type inferred",
    ])  # fmt: skip
    expect(first.get_by_role("mark", include_hidden=True)).to_have_text(["money", "customers", "customer", "money"])
    expect(second.get_by_role("mark", include_hidden=True)).to_have_count(0)
    for text in ("deprecated", "as registered", "suspicious: its text contains bidirectional control characters"):
        expect(second.get_by_text(text, exact=True)).to_be_visible()
    expect(second.get_by_text("No description.")).to_be_visible()
    expect(second.get_by_text("No matching words: found by meaning alone.")).to_be_hidden()
    first.locator("summary").press("Enter")
    for text in ("in description, example requests.", "by Acme", "version 2.1"):
        expect(first.get_by_text(text)).to_be_visible()
    shortlist(page).get_by_text("2 results in 840 ms, 0.001234 USD").click()
    for text in ("2,345 in, 67 out", "nova-lite", "titan-v2", "reranker", "encoder", "812.5 ms"):
        expect(shortlist(page).get_by_text(text, exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"verdict": "weak"}, ["Weak No clear match"]),
        ({"verdict": "perhaps"}, ["perhaps"]),
        ({"cost": {"input_tokens": 10, "output_tokens": 0, "usd": None}}, ["2 results in 840 ms, at an unknown price"]),
        ({"cost": {"input_tokens": 0, "output_tokens": 0, "usd": 0.0}}, ["2 results in 840 ms, no model cost"]),
        (
            {"degraded": ["llm", "neural", "lexical", "audiences", "something-new"]},
            ["Words and meaning take its weight", "by words only", "by meaning only", "Only public", "something-new"],
        ),
    ],
)
def test_verdict_cost_and_degradation_are_put_into_words(console, changes, told):
    page = shown(console, **changes)
    for text in told:
        expect(shortlist(page).get_by_text(text).first).to_be_visible()


def test_results_below_weak_are_folded_and_keep_their_places(console):
    results = [
        {**FIRST, "id": f"com.acme/{i}", "name": f"one-{i}", "relevance": r} for i, r in enumerate((0.9, 0.1, 0.5))
    ]
    page = shown(console, results=results, thresholds={"match": 0.6, "weak": 0.3})
    expect(page.get_by_role("status")).to_have_text("match: 2 results, 1 less relevant")
    visible = names(page).locator("visible=true")
    expect(visible).to_have_text(["one-0", "one-2"])
    shortlist(page).get_by_text("1 less relevant").press("Enter")
    expect(visible).to_have_text(["one-0", "one-2", "one-1"])
    expect(cards(page).nth(2)).to_have_attribute("value", "2")


def test_at_none_the_page_says_what_to_do_next(console):
    page = console.open()
    fulfil(page, {**ANSWER, "verdict": "none", "thresholds": {"match": 0.99, "weak": 0.98}})
    page.goto(f"{console.url}/{at('search', q=ASKED, ns='com.acme', kind='tool')}")
    expect(shortlist(page).get_by_role("link", name="See what is registered")).to_be_visible()
    shortlist(page).get_by_role("link", name="Search all kinds and namespaces").click()
    expect(page).to_have_url(re.compile(r"#/search\?q=[^&]*$"))
    expect(names(page).first).to_be_visible()


def test_missing_and_rejected_answers_are_reported_and_the_next_one_is_shown(console):
    console.forgive(r"net::ERR_FAILED .*/discover|status of 422 .*/discover")
    page = console.open()
    page.route("**/discover", lambda route: route.abort())
    box(page).fill(REFUND)
    box(page).press("Enter")
    expect(shortlist(page).get_by_text("The service does not answer: check that it is running.")).to_be_visible()
    page.unroute("**/discover")
    page.goto(f"{console.url}/{at('search', q='refund ' * 400)}")
    expect(shortlist(page).get_by_role("listitem")).to_contain_text("query must have at most")
    find(page, REFUND)
    expect(names(page).first).to_have_text("create_refund")


def test_a_slow_answer_does_not_come_over_a_later_one(console, sample):
    page = console.open()
    slow = []
    page.route(
        "**/discover", lambda route: slow.append(route) if REFUND in route.request.post_data else route.continue_()
    )
    box(page).fill(REFUND)
    with page.expect_request("**/discover"):
        box(page).press("Enter")
    expect(shortlist(page)).to_have_attribute("aria-busy", "true")
    find(page, "speak a text aloud")
    slow[0].fulfill(json=answered(sample, REFUND))
    later = [one["name"] for one in answered(sample, "speak a text aloud")["results"]]
    calm(page)
    expect(names(page)).to_have_text(later)


def test_the_panel_shows_how_a_result_is_found_and_asks_nothing_again(console, sample):
    page = console.open()
    asked = []
    page.on("request", lambda request: asked.append(request) if request.url.endswith("/discover") else None)
    find(page, REFUND)
    names(page).first.click()
    expect(panel(page).get_by_text(STRIPE, exact=True)).to_be_visible()
    fields = sample.request(f"/registry/capabilities/{STRIPE}")[1]["profile"]["enrichment"]
    expect(panel(page).get_by_text("Not enriched by an LLM: the owner's own text.")).to_be_visible()
    expect(panel(page).get_by_text(fields["summary"], exact=True).first).to_be_visible()
    expect(panel(page).get_by_role("mark").first).to_be_visible()
    expect(panel(page).get_by_text("88 of 100")).to_be_visible()
    page.go_back()
    expect(panel(page)).to_have_count(0)
    assert len(asked) == 1
