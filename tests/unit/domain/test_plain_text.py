"""Unit tests of plain text and openings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.text.words import opening, plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Get a [claim](https://docs.example.com/a_(b)).", "Get a claim."),
        ('Read the [docs](/x "Title") and ![logo][1].', "Read the docs and logo."),
        ("See the documentation.", "See the documentation."),
        (
            'Lists forks. For more information, see "[About](https://x.example)." Newest first.',
            "Lists forks. Newest first.",
        ),
        ("Adds a key. See https://example.com/keys for more.", "Adds a key."),
        ("Reads `items[0](now)` of <path>", "Reads `items0` of <path>"),
        ("<b>Bold</b> text", "Bold text"),
        ("Fetches https://example.com/feed", "Fetches https://example.com/feed"),
        ("Nothing to change: a < b.", "Nothing to change: a < b."),
    ],
)
def test_links_keep_their_words_and_referrals_leave(text, expected):
    assert " ".join(plain(text).split()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Get claim. Returns a claim with its photos. Needs a key.", "Get claim. Returns a claim with its photos."),
        ("Creates a refund for a captured card payment. Slow.", "Creates a refund for a captured card payment."),
        ("Get claim.", "Get claim."),
        ("查询指定城市的天气预报。支持国内城市。", "查询指定城市的天气预报。"),
        ("", ""),
    ],
)
def test_an_opening_ends_once_it_says_enough(text, expected):
    assert opening(text) == expected


@given(st.text(), st.integers(min_value=2, max_value=50))
def test_an_opening_is_within_its_limit(text, limit):
    assert len(opening(text, limit)) <= limit
