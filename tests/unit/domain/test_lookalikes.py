"""Text as readers see it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.text.fence import skeleton


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
