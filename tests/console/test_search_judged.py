"""Answers that an LLM judged, and other answers that a registry at hand does not give."""

import copy

import pytest
from playwright.sync_api import expect

from tests.console.judged import ANSWER, ASKED, FIRST
from tests.console.pages import at, cards, find, fulfil, names, shortlist, signals

pytestmark = pytest.mark.server


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


def test_every_kind_of_price_is_shown(console):
    for tokens, usd, told in (
        (10, None, "at an unknown price"),
        (10, 0.0, "free"),
        (0, 0.0, "no model called"),
        (9_999, 0.12345, "0.1235 USD"),
    ):
        page = shown(console, cost={"input_tokens": tokens, "output_tokens": 0, "usd": usd})
        expect(shortlist(page).get_by_text(f"2 results in 840 ms, {told}")).to_be_visible()


def test_only_the_spellings_that_were_found_are_marked(console):
    page = shown(console)
    expect(cards(page).nth(0).get_by_role("mark")).to_have_text(["money", "customers", "customer", "money"])
    expect(cards(page).nth(0).get_by_text("in description, positive examples.")).to_be_visible()
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
    expect(cards(page).nth(0).get_by_text("by Acme")).to_be_visible()
    expect(cards(page).nth(0).get_by_text("version 2.1")).to_be_visible()


def test_every_verdict_is_shown(console):
    for verdict, told in (
        ("match", "Match The registry has this."),
        ("weak", "Weak No clear match: check before you use one."),
        ("none", "None No capability matches."),
    ):
        page = shown(console, verdict=verdict)
        expect(shortlist(page).get_by_text(told)).to_be_visible()


def test_every_degradation_is_shown(console):
    missing = {
        "llm": "Without the reranker, words and meaning take its weight.",
        "neural": "Searched by words only.",
        "lexical": "Searched by meaning only.",
        "audiences": "Your audiences could not be looked up: only public capabilities are shown.",
        "something-new": "This part was not available.",
    }
    page = shown(console, degraded=list(missing))
    for stage, told in missing.items():
        expect(shortlist(page).get_by_text(f"Degraded: {stage}. {told}")).to_be_visible()


def test_unknown_verdicts_stages_and_signals_are_shown_by_name(console):
    first = {**FIRST, "signals": {**FIRST["signals"], "novelty": 0.5}, "weights": {**FIRST["weights"], "novelty": 0.1}}
    page = shown(console, verdict="perhaps", results=[first])
    expect(shortlist(page).get_by_text("perhaps")).to_be_visible()
    expect(signals(cards(page).nth(0)).last).to_have_text("novelty weight 10 %0.50")


def test_without_configured_weights_the_effective_ones_are_shown(console):
    console.forgive(r"status of 503 .*/healthz")
    page = console.open("#/evaluation")
    fulfil(page, {"detail": "not now"}, status=503, url="**/healthz")
    fulfil(page, ANSWER)
    page.get_by_role("link", name="Search").click()
    find(page, ASKED)
    expect(names(page)).to_have_text(["createRefund", "pay_back"])
    expect(signals(cards(page).nth(0)).first).to_have_text("Reranker weight 50 %0.95")
