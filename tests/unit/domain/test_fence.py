"""Escaping and truncation of untrusted text."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.text.fence import (
    encode_json,
    escape_hidden,
    find_hidden,
    is_hidden,
    remove_hidden,
    size,
    skeleton,
    spell_out,
    truncate_json,
    visible,
)
from tests.strategies import SCALARS, json_values


@given(json_values(SCALARS))
def test_encoded_text_cannot_close_a_tag_and_decodes_to_itself(value):
    text = encode_json(value)
    assert not set(text) & set("<>&")
    assert len(text.splitlines()) == 1
    assert json.loads(text) == value


@given(st.text(max_size=400), st.integers(0, 300))
def test_truncated_text_is_within_its_limit_and_a_prefix(text, room):
    text = visible(text)
    fit = truncate_json(text, room)
    assert size(encode_json(fit)) - 2 <= room
    assert text.startswith(fit.removesuffix("…"))
    if size(encode_json(text)) - 2 <= room:
        assert fit == text


def test_a_text_is_cut_between_words_with_an_ellipsis_and_a_long_one_uses_its_room():
    assert truncate_json("refund a payment to the card", 20) == "refund a payment…"
    assert size(truncate_json("x" * 5_000, 240)) == 240


@given(st.text())
def test_visible_text_has_no_hidden_characters_and_is_unchanged(text):
    shown = visible(text)
    assert not any(is_hidden(c) or unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in shown)
    assert shown == " ".join(shown.split())
    assert visible(shown) == shown


@pytest.mark.parametrize(
    "hidden",
    [
        "\u200b", "\u061c", "\u202e", "\u2066", "\U000e0041", "\ufe0f", "\U000e0101", "\ue000", "\ufeff", "\u00ad",
        "\ud800",
        # fillers and blanks: letters without ink
        "\u034f", "\u115f", "\u1160", "\u17b4", "\u180b", "\u180e", "\u3164", "\uffa0", "\u2800", "\U00016fe4",
        "\U0001d159",
        # noncharacters
        "\ufdd0", "\uffff", "\U0002fffe",
        # planes without visible characters
        "\U00040041", "\U000d1234",
    ],
)  # fmt: skip
def test_characters_without_a_face_are_dropped(hidden):
    assert is_hidden(hidden)
    assert visible(f"pay{hidden}ment") == "payment"


def test_every_hidden_category_of_unicode_is_hidden_and_no_assigned_character_for_its_plane_alone():
    hidden = {chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cf", "Co", "Cs")}
    assert all(map(is_hidden, hidden))
    assert not [chr(code) for code in range(0x40000, 0xE0000) if unicodedata.name(chr(code), "")]


SHAPED = [
    "❤\ufe0f",
    "👩🏽\u200d💻",
    "🏳\ufe0f\u200d🌈",
    "👩\u200d👩\u200d👧",
    "1\ufe0f\u20e3",
    "می\u200cخواهم",
    "क्\u200dष",
]


@pytest.mark.parametrize("text", SHAPED)
def test_joiners_and_selectors_that_shape_a_character_are_not_spelled_out(text):
    assert spell_out(f"a {text} b") == f"a {text} b"
    assert find_hidden(text)
    assert find_hidden(text, allow_shaping=True) == []


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("re\u200bfund", "re⟨U+200B⟩fund"),
        ("a\ufe0f é\ufe0f\ufe0f", "a⟨U+FE0F⟩ é\ufe0f⟨U+FE0F⟩"),
        ("pay\u200dment", "pay⟨U+200D⟩ment"),
        ("❤\ufe0f\u200d", "❤\ufe0f⟨U+200D⟩"),
        ("\x7f\x85\x9b\u2028", "⟨U+007F⟩⟨U+0085⟩⟨U+009B⟩⟨U+2028⟩"),
        ("\U000e0041" * 40, "⟨U+E0041⟩" * 8 + "⟨32 more⟩"),
        ("Größe\n\t", "Größe\n\t"),
    ],
)
def test_hidden_characters_are_spelled_out(text, spelled):
    assert spell_out(text) == spelled


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_spelled_out_json_is_valid_and_keeps_its_shape(text):
    spelled = json.loads(spell_out(json.dumps({"a": [text, 1], "b": True}, ensure_ascii=False)))
    assert (spelled["a"][1:], spelled["b"]) == ([1], True)
    assert find_hidden(spelled["a"][0], allow_shaping=True) == []
    assert spell_out(spelled["a"][0]) == spelled["a"][0]


@given(json_values(st.text()))
def test_nothing_hidden_remains_in_any_part_of_a_value(value):
    shown = json.dumps(remove_hidden(value), ensure_ascii=False)
    assert not any(is_hidden(c) or unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in shown)
    assert "\\u001b" not in shown
    assert remove_hidden({"a\nb\tc": [1, None, True, 0.5]}) == {"a\nb\tc": [1, None, True, 0.5]}


@given(st.text())
def test_escaped_json_has_the_same_value(text):
    escaped = escape_hidden(json.dumps(text, ensure_ascii=False))
    assert json.loads(escaped) == text
    assert len(escaped.splitlines()) == 1
    assert not any(map(is_hidden, escaped))


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("Refund", "refund"),
        ("\u0420\u0430\u0443ment", "payment"),
        ("\uff32efund", "refund"),
        ("re\u200bf\u00adund", "refund"),
        ("r\u00e9fund", "refund"),
        ("PayPaI 10", "paypai io"),
        ("PayPal IO", "paypai io"),
        ("\u0392\u0395\u03a4\u0391", "beta"),
    ],
)
def test_the_skeleton_is_what_a_reader_sees(written: str, seen: str):
    assert skeleton(written) == seen


@given(st.text())
def test_the_skeleton_of_a_skeleton_is_itself(text: str):
    assert skeleton(skeleton(text)) == skeleton(text)
