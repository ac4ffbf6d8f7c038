"""Demand over fakes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mats.adapters.grouping import group_by_similarity
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt, pack_vector
from mats.domain.ranking.blend import Verdict
from mats.ports import Stored
from mats.usecases.find_demand import Demand, FindDemand
from tests.builders import a_profile
from tests.contract.learning import a_receipt
from tests.fakes import MemoryIndex
from tests.learning import MemoryOutcomes

REFUND = a_profile(name="refund", description="give money back to a customer")
EAST, NORTH = (1.0, 0.0), (0.0, 1.0)


@dataclass
class Log:
    """Receipts in a list, the latest last."""

    receipts: list[Receipt] = field(default_factory=list)

    def since(self, at: str, *, most: int) -> Sequence[Receipt]:
        return [receipt for receipt in reversed(self.receipts) if receipt.at >= at][:most]

    def add(self, text: str, vector: tuple[float, ...] | None, verdict: Verdict = Verdict.NONE) -> Receipt:
        number = len(self.receipts)
        receipt = a_receipt(
            f"q{number}", text=text, caller=f"caller {number % 2}", at=f"2026-01-{number + 1:02}", shown=(REFUND.id,),
            verdict=verdict, nearest=REFUND.id, vector=pack_vector(vector) if vector else None,
        )  # fmt: skip
        self.receipts.append(receipt)
        return receipt


def demand_of(log: Log, outcomes: MemoryOutcomes | None = None, since: str = "") -> Demand:
    index = MemoryIndex()
    index.put([Stored(REFUND.model_copy(update={"rev": 1}), None)])
    find = FindDemand(receipts=log, outcomes=outcomes or MemoryOutcomes(), index=index, group=group_by_similarity)
    return find(since)


def told(receipt: Receipt, event: Event, outcomes: MemoryOutcomes) -> None:
    feedback = Feedback(query_id=receipt.query_id, caller=receipt.caller, outcomes=(Outcome(REFUND.id, event),))
    outcomes.record(receipt, feedback, receipt.at)


def test_requests_are_grouped_by_their_vectors_whatever_their_words():
    log = Log()
    for text, vector in [("a poem", EAST), ("verses", EAST), ("the weather", NORTH), ("rain today", NORTH)]:
        log.add(text, vector)
    found = demand_of(log)
    assert [set(gap.examples) for gap in found.gaps] == [{"a poem", "verses"}, {"the weather", "rain today"}]
    assert [gap.callers for gap in found.gaps] == [2, 2]
    assert (found.requests, found.unmet, found.ungrouped) == (4, 4, 0)


def test_without_vectors_words_group():
    log = Log()
    for text in ("translate a poem", "translate the poem, please", "weather in Rome"):
        log.add(text, None)
    assert [gap.requests for gap in demand_of(log).gaps] == [2]


def test_what_callers_report_counts_for_and_against():
    log, outcomes = Log(), MemoryOutcomes()
    told(log.add("a poem", EAST, Verdict.MATCH), Event.WRONG, outcomes)
    told(log.add("verses", EAST, Verdict.MATCH), Event.WRONG, outcomes)
    assert [gap.reported for gap in demand_of(log, outcomes).gaps] == [2]
    for _ in range(2):
        told(log.add("poetry", EAST), Event.SUCCEEDED, outcomes)
    assert demand_of(log, outcomes).gaps == []
