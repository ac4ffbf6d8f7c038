"""Untrusted text as fields of a line."""

from hypothesis import given
from hypothesis import strategies as st

from mats.domain.prompts.rerank_prompt import field_text, truncate
from mats.domain.text.fence import is_hidden, size


@given(st.text(alphabet=st.characters() | st.sampled_from("<>＜﹥&|¦│｜║⎢\n")))
def test_a_field_has_no_brackets_bars_or_line_breaks(text):
    field = field_text(text)
    assert not set(field) & set("<>＜﹥&|¦│｜║⎢")
    assert len(field.splitlines()) <= 1
    assert not any(map(is_hidden, field))
    assert field_text(field) == field


@given(st.text(max_size=300), st.integers(-5, 200))
def test_a_truncated_field_is_within_its_limit_and_a_prefix(text, room):
    text = field_text(text)
    fit = truncate(text, room)
    assert size(fit) <= max(0, room)
    assert text.startswith(fit.removesuffix("…"))
    assert fit == text or size(text) > room


def test_a_field_is_cut_between_words_unless_that_wastes_half_of_it():
    assert truncate("refund a payment to the card", 14) == "refund a…"
    assert truncate("a " + "x" * 50, 20) == "a " + "x" * 15 + "…"
