"""The port `UseLog` over SQLite. Every query is bounded, or walks an index."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mats.adapters.sqlite.database import Readable
from mats.adapters.sqlite.registry import IN, as_json
from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event
from mats.domain.learning.reliability import time_of_weight
from mats.ports import ChangedOutcomes, OutcomeCounts, ReportedResult, ShownAnswer, ShownAnswers

_ANSWERS = "SELECT rowid, at, shown, verdict IN ('none', 'weak') FROM receipts WHERE rowid > ? ORDER BY rowid LIMIT ?"
_COUNTS = f"""
SELECT id, sum(counted = 'selected'), sum(counted = 'succeeded'), sum(counted = 'failed'), sum(counted = 'wrong'),
       max(iif(counted = 'succeeded', weight, NULL)), max(iif(counted IN ('failed', 'wrong'), weight, NULL))
FROM outcomes WHERE id IN {IN} GROUP BY id
"""
_FAILURES = """
SELECT outcomes.id, counted, weight, text, caller, outcomes.query_id
FROM memory JOIN outcomes ON outcomes.query_id = memory.query_id JOIN reports ON reports.query_id = memory.query_id
WHERE memory.change > (SELECT max(change) FROM memory) - ? AND counted IN ('failed', 'wrong')
ORDER BY memory.change DESC, outcomes.id LIMIT ?
"""
_LATEST_REPORTS = 5_000
"""Reported answers among which failures are looked for."""


@dataclass(frozen=True, slots=True)
class SqliteUseLog:
    """The position of an answer is its row's number, that of an outcome the change of its answer (schema.sql)."""

    database: Readable

    def answers(self, since: int | None, *, most: int) -> ShownAnswers:
        [(latest,)] = self.database.rows("SELECT coalesce(max(rowid), 0) FROM receipts")
        position = latest - most if since is None or since > latest else since
        rows = self.database.rows(_ANSWERS, (max(0, position), most))
        answers = [ShownAnswer(at, tuple(json.loads(shown)), bool(unmatched)) for _, at, shown, unmatched in rows]
        return ShownAnswers(rows[-1][0] if rows else max(0, position), answers)

    def changes(self, since: int | None) -> ChangedOutcomes:
        [(position,)] = self.database.rows("SELECT coalesce(max(change), 0) FROM memory")
        if since is None:
            rows = self.database.rows("SELECT DISTINCT id FROM outcomes")
        else:
            query = "SELECT DISTINCT outcomes.id FROM memory JOIN outcomes USING (query_id) WHERE change > ?"
            rows = self.database.rows(query, (since,))
        return ChangedOutcomes(position, [Id(id) for (id,) in rows])

    def counts(self, ids: Collection[Id]) -> Mapping[Id, OutcomeCounts]:
        rows = self.database.rows(_COUNTS, (as_json(ids),))
        return {
            Id(id): OutcomeCounts(selected, succeeded, failed, wrong, _time(success), _time(failure))
            for id, selected, succeeded, failed, wrong, success, failure in rows
        }

    def latest_failures(self, *, most: int) -> Sequence[ReportedResult]:
        rows = self.database.rows(_FAILURES, (_LATEST_REPORTS, most))
        return [
            ReportedResult(Id(id), Event(event), time_of_weight(weight), text, caller, query_id)
            for id, event, weight, text, caller, query_id in rows
        ]


def _time(weight: float | None) -> str | None:
    return None if weight is None else time_of_weight(weight)
