"""Requests in other words of the registry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.errors import RequestInvalid
from mats.domain.text.variants import MOST_GROUPS, Synonyms, parse_groups, with_group, without_word

GROUPS = parse_groups(
    ["PR, pull request  # comment", "", "# nothing else", "発注, purchase order", "café, coffee shop"]
)
SYNONYMS = Synonyms(GROUPS)


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("merge a PR!", ("merge a pull request!",)),
        ("list Pull-Requests", ("list PR",)),
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
        groups = parse_groups(map(",".join, lines))
    except RequestInvalid:
        return
    assert parse_groups(map(", ".join, groups)) == groups
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


def test_groups_are_bounded():
    many = tuple((f"a{number}", f"b{number}") for number in range(MOST_GROUPS))
    with pytest.raises(RequestInvalid, match="at most"):
        with_group(many, ["one", "more"])
