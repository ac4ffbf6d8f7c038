"""Answers that an LLM judged, and other answers that a registry at hand does not give."""

import copy
import re

import pytest
from playwright.sync_api import expect

from tests.console.judged import ANSWER, ASKED, FIRST
from tests.console.pages import at, cards, fulfil, names, reasons, shortlist, signals


def shown(console, **changes):
    """The console over an answer with these changes."""
    page = console.open()
    fulfil(page, {**copy.deepcopy(ANSWER), **changes})
    page.goto(f"{console.url}/{at('search', q=ASKED)}")
    expect(page.get_by_role("status")).to_contain_text("result")
    return page


def test_an_answer_with_the_reranker_shows_its_signal_and_no_stand_in(console):
    page = shown(console)
    expect(shortlist(page).get_by_text("Degraded")).to_have_count(0)
    expect(shortlist(page).get_by_text("It looks for: payments.")).to_be_visible()
    expect(signals(cards(page).nth(0))).to_have_text([
        "Reranker weight 50 %0.95", "Words (BM25) weight 5 %0.40", "Trust weight 30 %0.90",
        "Type asked for weight 15 %1.00",
    ])  # fmt: skip
    expect(signals(cards(page).nth(1))).to_have_text([
        "Reranker weight 50 → 91 %0.40", "Words (BM25) weight 5 → 9 %0.10",
        "Trust weight 30 %absent: no trust given", "Type asked for weight 15 %absent: no type inferred",
    ])  # fmt: skip
    told = "Score 0.91: Reranker 0.47, Words (BM25) 0.02, Trust 0.27, Type asked for 0.15"
    expect(cards(page).get_by_role("img", name=told.replace("0.47", f"{0.5 * 0.95:.2f}"))).to_be_visible()


def test_cost_is_shown_with_tokens_and_models(console):
    page = shown(console)
    line = shortlist(page).get_by_text("2 results in 840 ms, 0.001234 USD")
    line.click()
    for text in ("2,345 in, 67 out", "nova-lite", "titan-v2", "reranker", "encoder", "812.5 ms", "rerank"):
        expect(shortlist(page).get_by_text(text, exact=True)).to_be_visible()


def test_only_the_spellings_that_were_found_are_marked(console):
    page = shown(console)
    marks = cards(page).nth(0).get_by_role("mark", include_hidden=True)
    expect(marks).to_have_text(["money", "customers", "customer", "money"])
    expect(reasons(cards(page).nth(0)).get_by_text("in description, example requests.")).to_be_visible()
    reasons(cards(page).nth(1))
    expect(cards(page).nth(1).get_by_role("mark")).to_have_count(0)
    found = "No matching words: found by meaning alone."
    expect(cards(page).nth(1).get_by_text(found)).to_be_visible()


def test_warnings_are_shown_as_words(console):
    page = shown(console)
    second = cards(page).nth(1)
    for text in ("deprecated", "as registered", "suspicious: its text contains bidirectional control characters"):
        expect(second.get_by_text(text, exact=True)).to_be_visible()
    expect(second.get_by_text("No description.")).to_be_visible()
    expect(cards(page).nth(0).get_by_text("as registered")).to_have_count(0)
    reasons(cards(page).nth(0))
    expect(cards(page).nth(0).get_by_text("by Acme")).to_be_visible()
    expect(cards(page).nth(0).get_by_text("version 2.1")).to_be_visible()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"verdict": "match"}, ["Match The registry has this."]),
        ({"verdict": "weak"}, ["Weak No clear match"]),
        ({"verdict": "none"}, ["None No capability matches"]),
        ({"cost": {"input_tokens": 10, "output_tokens": 0, "usd": None}}, ["2 results in 840 ms, at an unknown price"]),
        ({"cost": {"input_tokens": 10, "output_tokens": 0, "usd": 0.0}}, ["2 results in 840 ms, free"]),
        ({"cost": {"input_tokens": 0, "output_tokens": 0, "usd": 0.0}}, ["2 results in 840 ms, no model cost"]),
        ({"cost": {"input_tokens": 9_999, "output_tokens": 0, "usd": 0.12345}}, ["2 results in 840 ms, 0.1235 USD"]),
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


def results(*relevance):
    return [
        {**FIRST, "id": f"com.acme/one-{i}", "name": f"one-{i}", "relevance": r} for i, r in enumerate(relevance, 1)
    ]


def test_results_below_weak_are_folded_and_keep_their_places(console):
    page = shown(console, results=results(0.9, 0.1, 0.5, 0.2), thresholds={"match": 0.6, "weak": 0.3})
    for place, name in ((1, "one-1"), (3, "one-3")):
        expect(cards(page).filter(has_text=name).locator(".place")).to_have_text(str(place))
    expect(page.get_by_role("status")).to_have_text("match: 2 results, 2 less relevant")
    visible = names(page).locator("visible=true")
    expect(visible).to_have_text(["one-1", "one-3"])
    page.evaluate("document.activeElement.blur()")
    for _ in range(3):
        page.keyboard.press("j")
    expect(visible.last).to_be_focused()
    shortlist(page).get_by_text("2 less relevant").press("Enter")
    expect(visible).to_have_text(["one-1", "one-3", "one-2", "one-4"])
    for place in (3, 0):
        cards(page).nth(place).get_by_role("checkbox").check()
    expect(page.get_by_role("link", name="Why is 1 above 4?")).to_be_visible()


def test_at_none_the_page_says_what_to_do_next(console):
    page = console.open()
    fulfil(page, {**copy.deepcopy(ANSWER), "verdict": "none", "thresholds": {"match": 0.99, "weak": 0.98}})
    page.goto(f"{console.url}/{at('search', q=ASKED, ns='com.acme', kind='tool')}")
    expect(shortlist(page).get_by_role("heading", name="What to do next")).to_be_visible()
    expect(names(page).first).to_be_visible()
    expect(shortlist(page).get_by_role("link", name="See what is registered")).to_be_visible()
    shortlist(page).get_by_role("link", name="Search all kinds and namespaces").click()
    expect(page).to_have_url(re.compile(r"#/search\?q=[^&]*$"))
    expect(shortlist(page).get_by_role("link", name="Search all kinds and namespaces")).to_have_count(0)
    expect(names(page).first).to_be_visible()


def test_the_most_telling_sentence_stands_in_the_row(console):
    text = "Part of the Acme suite. Gives money back to customers! Made in 2021."
    page = shown(console, results=[{**FIRST, "summary": text}])
    card = cards(page).first
    expect(card.locator("p.summary")).to_have_text("Gives money back to customers!")
    expect(card.get_by_text(text)).to_be_hidden()
    card.locator("summary").press("Enter")
    expect(card.get_by_text(text)).to_be_visible()
    expect(signals(card).first).to_be_visible()
    card.locator("summary").press("Space")
    expect(signals(card).first).to_be_hidden()


def test_unknown_verdicts_stages_and_signals_are_shown_by_name(console):
    first = {**FIRST, "signals": {**FIRST["signals"], "novelty": 0.5}, "weights": {**FIRST["weights"], "novelty": 0.1}}
    page = shown(console, verdict="perhaps", results=[first])
    expect(shortlist(page).get_by_text("perhaps")).to_be_visible()
    expect(signals(cards(page).nth(0)).last).to_have_text("novelty weight 10 %0.50")
