"""Misspelt words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.policies.spelling import may_be_misspelt
from mats.domain.text.spelling import distance, nearest, word_of
from mats.domain.text.words import stem


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("opne pull requets", ["opne", "pull", "requets"]),
        ("strat a workflwo with Trello", ["strat", "workflwo"]),
        ("the id v2 x", []),
        ("show what is there", []),
        ("devolver el dinero", []),
    ],
)
def test_names_short_and_common_words_and_other_languages_are_not_misspelt(text, words):
    assert may_be_misspelt(text) == words


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("opne", {"open": 1, "one": 90, "oven": 90}, "open"),
        ("refunnd", {"refund": 2}, "refund"),
        ("refnd", {"refund": 2}, "refund"),
        ("refubd", {"refund": 2}, ""),
        ("isue", {"issu": 2}, ""),
        ("strat", {"string": 9}, ""),
        ("workfolws", {"workflow": 1}, "workflow"),
        ("wrokfolws", {"workflow": 1}, ""),
        ("opne", {"open": 0}, ""),
        ("pager", {"page": 9}, ""),
        ("addres", {"address": 1, "addict": 9}, "address"),
    ],
)
def test_the_nearest_has_the_same_letters_or_one_more_or_less_then_many_capabilities(word, known, found):
    assert nearest(word, known) == found


_TEXT = st.text("abc", max_size=6)


@given(_TEXT, _TEXT, st.integers(0, 5), st.sampled_from("abc"))
def test_an_edit_is_one_step_and_the_distance_is_symmetric(one, other, place, letter):
    place = min(place, len(one))
    assert distance(one, one[:place] + letter + one[place:], 2) == 1
    assert distance(one, one[:place] + one[place : place + 2][::-1] + one[place + 2 :], 2) <= 1
    assert distance(one, other, 2) == distance(other, one, 2)
    assert (distance(one, other, 2) == 0) == (one == other)


@pytest.mark.parametrize("word", ["database", "requests", "happy", "created", "open"])
def test_a_word_is_found_again_by_its_stem(word):
    assert stem(word_of(stem(word))) == stem(word)
