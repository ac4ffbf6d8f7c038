"""Contract of the port `Receipts`."""

import pytest

from mats.domain.learning.outcome import Receipt, pack_vector, unpack_vector
from tests.contract.conftest import Expiring
from tests.contract.learning import PAY, a_receipt

BARE = a_receipt(
    text="", audiences=frozenset(), shown=(), verdict=None, nearest=None, encoder="", vector=None,
    narrowed=True,
)  # fmt: skip
ODD = a_receipt(text="支払い \u202e\x00 'quote'; DROP TABLE receipts; 🧾")


@pytest.mark.parametrize("receipt", [a_receipt(), BARE, ODD], ids=["full", "bare", "odd"])
def test_a_receipt_is_read_back_as_it_was(expiring: Expiring, receipt: Receipt):
    receipts, _ = expiring
    assert receipts.get(receipt.query_id) is None
    receipts.put(receipt)
    assert receipts.get(receipt.query_id) == receipt


def test_a_receipt_replaces_the_earlier_one_and_expires(expiring: Expiring):
    receipts, clock = expiring
    receipts.put(a_receipt(verdict=None))
    receipts.put(a_receipt(shown=(PAY,)))
    clock.time = "2026-01-30T23:59:59+00:00"
    assert receipts.get("q1") == a_receipt(shown=(PAY,))
    clock.time = "2026-01-31T00:00:01+00:00"
    assert receipts.get("q1") is None


def test_a_packed_vector_has_three_decimal_places():
    vector = [0.123456, -0.98, 1.0, 0.0]
    assert unpack_vector(pack_vector(vector)) == pytest.approx(vector, abs=5e-4)
    assert len(pack_vector([0.1] * 1024)) == 2048
