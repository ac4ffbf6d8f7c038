"""Requests in other words of the registry, and misspelt words."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.adapters.dynamodb.tables import to_row
from mats.domain.errors import RequestInvalid
from mats.domain.text.variants import (
    Synonyms,
    distance,
    may_be_misspelt,
    nearest,
    with_group,
    without_word,
    word_of,
)
from mats.domain.text.words import stem
from tests.aws.items import MAX_BYTES, item_bytes

GROUPS = reduce(with_group, [["PR", "pull request"], ["発注", "purchase order"], ["café", "coffee shop"]], ())
SYNONYMS = Synonyms(GROUPS)


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("merge a PR!", ("merge a pull request!",)),
        ("approve the prs", ("approve the pull request",)),
        ("発注を取り消す", ("purchase orderを取り消す",)),
        ("cancel the purchase orders", ("cancel the 発注",)),
        ("find a cafe", ("find a coffee shop",)),
        ("order a press", ()),
        ("", ()),
        ("PR in a café", ("PR in a coffee shop", "pull request in a café", "pull request in a coffee shop")),
    ],
)
def test_a_request_is_rewritten_in_both_directions(text: str, rewritten: tuple[str, ...]):
    assert SYNONYMS.rewrites(text) == rewritten


def test_of_several_phrases_the_longest_is_replaced():
    assert Synonyms((("b", "bug"), ("bug report", "issue"))).rewrites("file a bug report") == ("file a issue",)


@given(
    st.text(st.sampled_from("ab c,発é#"), max_size=30), st.lists(st.lists(st.text("abé発 ", max_size=4), max_size=4))
)
def test_any_text_has_few_rewrites_and_never_itself(text: str, lines: list[list[str]]):
    try:
        groups = reduce(with_group, lines, ())
    except RequestInvalid:
        return
    assert reduce(with_group, groups, ()) == groups
    found = Synonyms(groups).rewrites(text)
    assert len(found) <= 3
    assert text not in found


def test_groups_with_a_word_in_common_are_one_until_the_word_is_removed():
    groups = with_group(with_group((), ["PR", "pull request"]), ["Pull Requests", "merge request"])
    assert [len(group) for group in groups] == [3]
    assert without_word(groups, "pr") == (("merge request", "pull request"),)
    assert without_word(without_word(groups, "pr"), "merge request") == ()


@pytest.mark.parametrize("words", [["pr"], ["pr", "PRs"], ["it", "technology"], ["", "x"], ["x" * 61, "y"], ["!", "y"]])
def test_a_group_that_says_nothing_is_refused(words: list[str]):
    with pytest.raises(RequestInvalid):
        with_group((), words)


@pytest.mark.parametrize(("count", "letters"), [(1_000, ""), (300, "a" * 50), (105, "発" * 50)])
def test_groups_are_refused_before_they_do_not_fit_an_item(count: int, letters: str):
    words = 2 if not letters else 20
    many = tuple(tuple(f"{letters} w{number} {place}".strip() for place in range(words)) for number in range(count))
    assert item_bytes(to_row({"groups": [list(group) for group in many]})) < MAX_BYTES - 20_000
    with pytest.raises(RequestInvalid, match="at most"):
        with_group((*many, *many[: count // 10]), ["one", "more"])


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
