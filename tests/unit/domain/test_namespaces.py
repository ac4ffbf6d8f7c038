"""Unit tests of namespaces named in requests."""

import pytest

from mats.domain.ranking.query import is_listing, is_named, named_words, namespace_words


@pytest.mark.parametrize(
    ("namespace", "telling"),
    [
        ("com.stripe.mcp", {"stripe"}),
        ("io.github.someone.weather-mcp-server", {"weather"}),
        ("io.github.block", {"block"}),
        ("com.acme.pay-links", {"acme", "pay", "links"}),
        ("stripe", {"stripe"}),
        ("com", {"com"}),
    ],
)
def test_the_words_of_a_namespace_are_those_that_tell_it_from_others(namespace, telling):
    assert namespace_words(namespace) == telling


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("list all tools of stripe", {"stripe"}),
        ("what can the GitHub server do?", {"github"}),
        ("show me everything from google maps", {"google", "maps"}),
        ("filesystem", {"filesystem"}),
        ("google maps", {"google", "maps"}),
        ("list my open issues", set()),
        ("refund a card payment", set()),
        ("list all tools", set()),
        ("", set()),
    ],
)
def test_a_request_for_what_a_namespace_has_names_it(text, asked):
    assert named_words(text) == asked


def test_a_bare_name_names_a_namespace_with_no_other_words():
    assert is_named("com.acme.filesystem", frozenset({"filesystem"}), "list tools of filesystem")
    assert not is_named("com.acme.filesystem", frozenset({"filesystem"}), "filesystem")
    assert is_named("io.github.someone.filesystem", frozenset({"filesystem"}), "filesystem")


def test_a_request_for_a_task_is_no_listing():
    assert not is_listing("refund the card payment of order 7")
