"""Working stand-ins for the ports of learning, in memory, beside those of `tests.fakes`."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from mats.adapters.clock import Retention
from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import TAUGHT, Feedback, Outcome, Receipt, ReportedAnswer


@dataclass
class MemoryReceipts:
    """Receipts in a dict, each with its expiry."""

    retention: Retention = field(default_factory=lambda: Retention(30))
    kept: dict[str, tuple[Receipt, int]] = field(default_factory=dict)

    def put(self, receipt: Receipt) -> None:
        self.kept[receipt.query_id] = receipt, self.retention.in_days(self.retention.days)

    def get(self, query_id: str) -> Receipt | None:
        receipt, expiry = self.kept.get(query_id, (None, 0))
        return receipt if expiry > self.retention.now() else None


@dataclass
class MemoryOutcomes:
    """Reported outcomes in a dict."""

    answers: dict[str, ReportedAnswer] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, receipt: Receipt, feedback: Feedback) -> Sequence[Outcome]:
        with self._lock:
            answer = self.answers.setdefault(receipt.query_id, ReportedAnswer(receipt=receipt, events={}))
            new = [each for each in feedback.outcomes if each.event not in answer.events.get(each.id, ())]
            events = dict(answer.events)
            for each in new:
                events[each.id] = events.get(each.id, frozenset()) | {each.event}
            changed = replace(answer, events=events, missing=feedback.missing or answer.missing)
            self.answers[receipt.query_id] = changed
            return new

    def of(self, query_id: str) -> ReportedAnswer | None:
        return self.answers.get(query_id)

    def confirm(self, query_id: str, *, confirmed: bool = True) -> bool:
        if query_id in self.answers:
            self.answers[query_id] = replace(self.answers[query_id], confirmed=confirmed)
        return query_id in self.answers

    def query_ids(self, *, after: str = "") -> Iterator[str]:
        yield from (query_id for query_id in sorted(self.answers) if query_id > after)

    def forget(self, id: Id, *, lessons: bool = False) -> int:
        found = {query_id: answer for query_id, answer in self.answers.items() if id in answer.events}
        found = {query_id: found[query_id] for query_id in found if lessons or not query_id.startswith(TAUGHT)}
        for query_id, answer in found.items():
            kept = {other: events for other, events in answer.events.items() if other != id}
            self.answers[query_id] = replace(answer, events=kept)
        return len(found)

    def withdraw(self, query_id: str) -> bool:
        return self.answers.pop(query_id, None) is not None

    def withdraw_of(self, caller: str) -> int:
        found = [id for id, each in self.answers.items() if each.receipt.caller == caller and not each.confirmed]
        return sum(map(self.withdraw, found))
