"""Descriptions without stock phrases and repetition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.prompts.rerank_prompt import new_clauses, without_stock_phrases
from mats.domain.text.words import stems


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Use this skill when the user wants to plan a trip.", "plan a trip."),
        ("When the user wants to plan a trip. Also use when the user mentions hotels.", "plan a trip. hotels."),
        ("Use when you need to refund a card", "refund a card"),
        ("This tool allows you to search the web.", "search the web."),
        ("This API endpoint will return a list. It can be used to sort.", "return a list. sort."),
        ("A tool that lets users book a flight", "book a flight"),
        ("This skill should be used when the user asks to draw.", "draw."),
        ("- Use this agent when you need to review code", "review code"),
        ("Can you please help me to find a flight", "find a flight"),
    ],
)
def test_openings_that_say_nothing_are_left_out(text, short):
    assert without_stock_phrases(text) == short


@pytest.mark.parametrize(
    "text",
    [
        "Do not use this skill when the user wants to plan a trip.",
        "Never use when you need to delete a file.",
        "Refunds a card. Not for users who want to pay.",
        "A payment tool that allows users to refund",
        "The weather service lets you see the forecast",
        "Use when working with Kubernetes",
        "Use this tool, not the other one",
        "Wiederholt, was this tool allows you to do",
    ],
)
def test_text_that_says_something_is_unchanged(text):
    assert without_stock_phrases(text) == text


@given(st.text(max_size=200))
def test_words_are_only_ever_left_out(text):
    rest = iter(text)
    assert all(character in rest for character in without_stock_phrases(text))


def test_only_clauses_that_add_words_are_kept():
    summary = "Refunds a card payment to the customer."
    action = "Refund the card payment, in part or whole, to customers; sends a receipt by mail."
    assert new_clauses(action, stems(summary)) == "in part or whole, sends a receipt by mail."
    assert new_clauses("Sends mail. Sends mail!", ()) == "Sends mail."
    assert new_clauses("", ("refund",)) == ""


def test_text_without_latin_words_is_not_lost():
    assert new_clauses("取引を返金する。領収書を送る", ()) == "取引を返金する。 領収書を送る"
