"""Receipts stored by a thread in the background."""

import threading
from collections.abc import Sequence

import pytest

from mats.adapters import background_receipts as module
from mats.adapters.background_receipts import BackgroundReceipts
from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import Receipt
from tests.command import wait_until
from tests.contract.learning import a_receipt
from tests.learning import MemoryReceipts


class GatedReceipts(MemoryReceipts):
    """A store that waits for `may_store` and fails while `failing`."""

    def __init__(self) -> None:
        super().__init__()
        self.may_store, self.asked = threading.Event(), threading.Event()
        self.failing = False
        self.batches: list[int] = []

    def put_all(self, receipts: Sequence[Receipt]) -> None:
        self.asked.set()
        assert self.may_store.wait(5)
        if self.failing:
            raise DependencyFailed("the disk is full")
        self.batches.append(len(receipts))
        for receipt in receipts:
            self.put(receipt)


@pytest.fixture
def store() -> GatedReceipts:
    return GatedReceipts()


def test_a_receipt_is_read_back_before_and_after_it_is_stored(store):
    receipts = BackgroundReceipts(store)
    receipts.put(a_receipt())
    assert store.kept == {}
    assert receipts.get("q1") == a_receipt()
    store.may_store.set()
    receipts.close()
    assert receipts.get("q1") == store.get("q1") == a_receipt()


def test_what_waits_is_stored_together(store):
    receipts = BackgroundReceipts(store)
    receipts.put(a_receipt("q0"))
    assert store.asked.wait(5)
    for number in range(1, 50):
        receipts.put(a_receipt(f"q{number}"))
    store.may_store.set()
    wait_until(lambda: sum(store.batches) == 50)
    assert len(store.batches) <= 3
    receipts.close()


def test_receipts_wait_for_others_until_the_system_closes_at_the_latest(store):
    store.may_store.set()
    receipts = BackgroundReceipts(store, gather_s=threading.TIMEOUT_MAX)
    for number in range(3):
        receipts.put(a_receipt(f"q{number}"))
    assert not store.asked.is_set()
    receipts.close()
    assert store.batches == [3]


def test_of_two_receipts_of_an_answer_the_later_stays(store):
    receipts = BackgroundReceipts(store)
    receipts.put(a_receipt(verdict=None))
    assert store.asked.wait(5)
    receipts.put(a_receipt())
    store.may_store.set()
    receipts.close()
    assert store.get("q1") == a_receipt()


def test_more_than_fit_are_refused(store, monkeypatch):
    monkeypatch.setattr(module, "_MOST", 3)
    receipts = BackgroundReceipts(store)
    for number in range(3):
        receipts.put(a_receipt(f"q{number}"))
    with pytest.raises(DependencyFailed, match="3 receipts wait"):
        receipts.put(a_receipt("q3"))
    store.may_store.set()
    receipts.close()
    assert len(store.kept) == 3


def test_while_the_store_fails_receipts_wait_and_answers_hear_of_it(store):
    store.failing = True
    store.may_store.set()
    receipts = BackgroundReceipts(store)
    receipts.put(a_receipt("q0"))
    wait_until(lambda: bool(receipts._failure))
    with pytest.raises(DependencyFailed, match="disk is full"):
        receipts.put(a_receipt("q1"))
    store.failing = False
    receipts.flush()
    receipts.put(a_receipt("q2"))
    receipts.close()
    assert set(store.kept) == {"q0", "q1", "q2"}


def test_closing_reports_what_is_lost(store, caplog):
    store.failing = True
    store.may_store.set()
    receipts = BackgroundReceipts(store)
    receipts.put(a_receipt())
    receipts.close()
    assert "1 receipts are lost: the disk is full" in caplog.text
