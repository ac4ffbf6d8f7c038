"""The receipts that answers leave."""

from concurrent.futures import Future
from dataclasses import replace

import pytest

from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import Receipt, unpack_vector
from mats.domain.search.query import Query
from mats.domain.search.verdict import Verdict
from mats.ports import RerankResult
from mats.usecases.receipts import LeaveReceipt
from tests.fakes import AtOnce, FakeClock, ScriptedReranker
from tests.learning import MemoryReceipts
from tests.world import ENCODER, GEOCODE, MAIL, REFUND, THREE, discover_over, indexed

QUERY = Query(query="money for a customer", limit=2)


class BrokenReceipts(MemoryReceipts):
    """Fails after this many receipts."""

    def __init__(self, works: int = 0) -> None:
        super().__init__()
        self.works = works

    def put(self, receipt: Receipt) -> None:
        if len(self.kept) >= self.works:
            raise DependencyFailed("the disk is full")
        super().put(receipt)


@pytest.fixture
def receipts() -> MemoryReceipts:
    return MemoryReceipts()


def test_a_receipt_has_what_the_caller_got(receipts):
    discover = discover_over(indexed(*THREE))
    shortlist = discover.answer(QUERY, {"staff"}, caller="ann", receipts=LeaveReceipt(later=receipts))
    receipt, best = receipts.get(shortlist.query_id), shortlist.results[0]
    shown = tuple(result.id for result in shortlist.results)
    assert (receipt.query_id, receipt.text, receipt.caller) == ("1", "money for a customer", "ann")
    assert (receipt.audiences, receipt.at, receipt.shown) == ({"staff"}, FakeClock().time, shown)
    assert (receipt.nearest, receipt.verdict) == (best.id, shortlist.verdict)
    assert (receipt.encoder, receipt.narrowed) == (ENCODER.name, False)
    assert len(receipt.shown) == 2
    assert unpack_vector(receipt.vector) == pytest.approx(list(ENCODER.encode_query(QUERY.query)), abs=1e-3)
    assert shortlist.degraded == ()


@pytest.mark.parametrize(
    ("asked", "narrowed", "kinds"),
    [
        ({}, False, ()),
        ({"kinds": ("tool",)}, True, ("tool",)),
        ({"namespaces": ("com.acme",)}, True, ()),
        (
            {"kinds": ("tool",), "namespaces": ("com.acme",)},
            True,
            (),
        ),  # else the use report took it for a lack of tools
        ({"kinds": ("tool",), "tags": ("pay",)}, True, ()),
    ],
)
def test_the_kinds_of_a_receipt_are_those_of_a_request_that_nothing_else_narrowed(receipts, asked, narrowed, kinds):
    query = Query(query="money for a customer", **asked)
    discover_over(indexed(*THREE)).answer(query, receipts=LeaveReceipt(later=receipts))
    receipt = receipts.get("1")
    assert (receipt.narrowed, tuple(receipt.kinds)) == (narrowed, kinds)


def test_an_answer_without_results_leaves_a_receipt_that_names_the_nearest(receipts):
    nothing = Query(query="money for a customer", min_relevance=1.0, kinds=("tool",))
    discover_over(indexed(*THREE)).answer(nothing, receipts=LeaveReceipt(later=receipts))
    receipt = receipts.get("1")
    assert (receipt.shown, receipt.narrowed) == ((), True)
    assert receipt.nearest in {REFUND.id, MAIL.id}
    discover_over(indexed()).answer(QUERY, receipts=LeaveReceipt(later=receipts))
    assert (receipts.get("1").nearest, receipts.get("1").verdict) == (None, Verdict.NONE)


def test_a_query_that_is_not_logged_is_not_stored_and_without_an_encoder_there_is_no_vector(receipts):
    discover_over(indexed(*THREE), encoder=None).answer(QUERY, receipts=LeaveReceipt(later=receipts, texts=False))
    receipt = receipts.get("1")
    assert (receipt.text, receipt.vector, receipt.encoder) == ("", None, "")


def test_a_receipt_that_cannot_be_stored_degrades_the_answer_and_nothing_else():
    plain = discover_over(indexed(*THREE)).answer(QUERY)
    shortlist = discover_over(indexed(*THREE)).answer(QUERY, receipts=LeaveReceipt(later=BrokenReceipts()))
    assert shortlist.degraded == ("receipt",)
    assert shortlist.trace.faults == ["receipt: the disk is full"]
    assert shortlist.results == plain.results


def test_an_early_receipt_has_the_candidates_before_the_reranker_answers_and_is_replaced():
    early, later, stored = MemoryReceipts(), MemoryReceipts(), []

    def rerank(query, candidates):
        stored.append(bool(early.get("1")))
        return RerankResult(scores=(0.1, 0.2, 0.9))

    discover = discover_over(indexed(*THREE), reranker=ScriptedReranker(rerank))
    shortlist = discover.answer(QUERY, receipts=LeaveReceipt(early=early, later=later))
    before, after = early.get("1"), later.get("1")
    assert (stored, before.verdict) == ([True], None)
    assert set(before.shown) == {REFUND.id, GEOCODE.id, MAIL.id}
    assert after.shown == tuple(result.id for result in shortlist.results)
    assert replace(before, shown=(), encoder="") == replace(after, shown=(), encoder="", verdict=None, nearest=None)
    assert shortlist.degraded == ()


def test_a_failing_early_receipt_degrades_and_a_failing_later_one_does_not():
    discover = discover_over(indexed(*THREE))
    broken = LeaveReceipt(early=BrokenReceipts(), later=MemoryReceipts())
    assert discover.answer(QUERY, receipts=broken).degraded == ("receipt",)
    unfinished = LeaveReceipt(early=MemoryReceipts(), later=BrokenReceipts())
    assert discover.answer(QUERY, receipts=unfinished).degraded == ()


class Slow(AtOnce):
    """Everything at once but one stage, which takes for ever."""

    def __init__(self, after: int) -> None:
        self.left = after

    def submit(self, fn, /, *args, **kwargs):
        self.left -= 1
        return Future() if self.left == 0 else super().submit(fn, *args, **kwargs)


def test_an_answer_that_took_longer_than_its_receipt_may_does_not_wait_for_it():
    clock = FakeClock()

    def rerank(query, candidates):
        clock.ms += 750
        return RerankResult(scores=(0.5,) * len(candidates))

    stages = 11  # spelling, products, lexical, neural, then the looks of five policies, fetch, and the receipt
    discover = discover_over(indexed(*THREE), reranker=ScriptedReranker(rerank), clock=clock, executor=Slow(stages))
    shortlist = discover.answer(QUERY, receipts=LeaveReceipt(early=MemoryReceipts(), later=MemoryReceipts()))
    assert shortlist.degraded == ("receipt",)
    assert shortlist.trace.took_ms["total"] == 750
