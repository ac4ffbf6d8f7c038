"""Random faults on receipts and feedback: a caller that repeats, reorders and duplicates over stores that fail."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, ReceiptNotFound, StorageUnusable
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt, effective_event
from mats.domain.learning.reliability import weight_at
from mats.ports import Outcomes, Receipts
from mats.usecases.learn import RecordFeedback
from tests.contract.learning import AT, a_receipt
from tests.fakes import FakeClock

CAPABILITIES = [Id(f"com.acme/{number}") for number in range(8)]
CALLERS = ["ann", "bob", "cleo"]


class Killed(BaseException):
    """The process ends here: nothing after it runs."""


@dataclass
class Faults:
    """Decides when a fault strikes, and counts those that did."""

    dice: random.Random
    struck: int = 0

    def choose(self, *kinds: str) -> str:
        """One of these kinds, or none."""
        return self.dice.choice([*kinds, "", ""])

    def strike(self) -> None:
        self.struck += 1


@dataclass
class Callers:
    """Callers who search and report until enough faults have struck."""

    receipts: Receipts
    outcomes: Outcomes
    faults: Faults
    restart: Callable[[], tuple[Receipts, Outcomes]]
    accepted: dict[str, set[Outcome]] = field(default_factory=dict)
    tried: dict[str, set[Outcome]] = field(default_factory=dict)
    answers: list[Receipt] = field(default_factory=list)
    waiting: list[Feedback] = field(default_factory=list)
    """Feedback that is not known to be recorded, and copies of some that is."""

    def run(self, faults: int) -> None:
        while self.faults.struck < faults:
            try:
                self.faults.dice.choice([self._search, self._report, self._deliver, self._deliver])()
            except Killed:
                self.receipts, self.outcomes = self.restart()
            except (DependencyFailed, StorageUnusable):
                pass  # the caller has no answer, and may repeat

    def _search(self) -> None:
        dice = self.faults.dice
        shown = tuple(dice.sample(CAPABILITIES, dice.randint(1, 5)))
        receipt = a_receipt(f"q{len(self.answers)}", caller=dice.choice(CALLERS), shown=shown)
        self.answers.append(receipt)
        self.receipts.put(receipt)

    def _report(self) -> None:
        if self.answers:
            dice, receipt = self.faults.dice, self.faults.dice.choice(self.answers[-40:])
            ids = dice.sample(receipt.shown, dice.randint(1, len(receipt.shown)))
            outcomes = tuple(Outcome(id, dice.choice(list(Event))) for id in ids)
            said = Feedback(query_id=receipt.query_id, caller=receipt.caller, outcomes=outcomes)
            self.tried.setdefault(receipt.query_id, set()).update(outcomes)
            self.waiting += [said] * dice.choice([1, 1, 2, 3])

    def _deliver(self) -> None:
        if not self.waiting:
            return
        said = self.waiting.pop(self.faults.dice.randrange(len(self.waiting)))
        record = RecordFeedback(receipts=self.receipts, outcomes=self.outcomes, clock=FakeClock(AT), days=30)
        try:
            record(said)
        except ReceiptNotFound:
            return  # the receipt was lost before anything was accepted
        except BaseException:
            self.waiting.append(said)
            raise
        self.accepted.setdefault(said.query_id, set()).update(said.outcomes)
        if self.faults.dice.random() < 0.1:
            self.waiting.append(replace(said))  # delivered again later

    def check(self, outcomes: Outcomes) -> None:
        """Everything accepted is there, nothing was made up, and tallies are the sums of what is there."""
        sums: dict[tuple[Id, str], list[float]] = {}
        stored = {query_id: outcomes.of(query_id) for query_id in outcomes.query_ids()}
        for query_id, expected in self.accepted.items():
            answer = stored[query_id]
            assert answer is not None
            assert expected <= {Outcome(id, event) for id, events in answer.events.items() for event in events}
        for query_id, answer in stored.items():
            assert answer is not None
            for id, events in answer.events.items():
                assert {Outcome(id, event) for event in events} <= self.tried[query_id]
                sums.setdefault((id, answer.receipt.caller), [0.0, 0.0])
                sums[id, answer.receipt.caller][0] += weight_at(AT) * (effective_event(events) is Event.SUCCEEDED)
                sums[id, answer.receipt.caller][1] += weight_at(AT) * (effective_event(events) is Event.FAILED)
        counted = {
            (id, tally.caller): [round(tally.successes, 6), round(tally.failures, 6)]
            for id, tallies in outcomes.tallies(CAPABILITIES).items()
            for tally in tallies
        }
        positive = {key: [round(each, 6) for each in both] for key, both in sums.items() if any(both)}
        assert {key: both for key, both in counted.items() if any(both)} == positive
        assert sum(map(len, self.accepted.values())) > self.faults.struck / 20
