"""Receipts, reported outcomes, and the counts of both, in SQLite. Queries for counts are bounded, or walk an index."""

import json
import sqlite3
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from mats.adapters.clock import Retention
from mats.adapters.sqlite.database import Database, Readable, Watch
from mats.adapters.sqlite.registry import IN, as_json
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import TAUGHT, Event, Feedback, Outcome, Receipt, ReportedAnswer, effective_event
from mats.domain.learning.reliability import Tally, time_of_weight, weight_at
from mats.domain.shortlist.rank import Shortlist
from mats.ports import (
    ChangedIds,
    Clock,
    Exposure,
    OutcomeCounts,
    ProviderExposure,
    ReportedResult,
    ShownAnswer,
    ShownAnswers,
)

_FIELDS = (
    "query_id", "at", "caller", "audiences", "text", "shown", "verdict", "nearest", "relevance", "narrowed", "kinds",
    "encoder",
)  # fmt: skip
_LISTS = ("audiences", "shown", "kinds")
_COLUMNS = ", ".join((*_FIELDS, "vector"))
_PLACES = ", ".join("?" * 13)


def _to_row(receipt: Receipt) -> tuple[object, ...]:
    fields = receipt.to_json()
    lists = {name: json.dumps(fields[name]) for name in _LISTS}
    return (*({**fields, **lists}[name] for name in _FIELDS), receipt.vector)


def receipt_of(row: Sequence[Any]) -> Receipt:
    """The receipt of a row of the columns of `receipts`, in the order of the schema, without its expiry."""
    *values, vector = row
    fields = dict(zip(_FIELDS, values, strict=True))
    lists = {name: json.loads(fields[name]) for name in _LISTS}
    return Receipt.from_json({**fields, **lists}, vector)


@dataclass(frozen=True, slots=True)
class SqliteReceipts:
    """The port `Receipts`. Expired rows are deleted with every write.

    Through a `Watch`, receipts do not make the console's list refresh.
    """

    database: Database | Watch
    retention: Retention

    def put(self, receipt: Receipt) -> None:
        self.put_all([receipt])

    def put_all(self, receipts: Sequence[Receipt]) -> None:
        """Store several in one transaction. Raises as `Database.writing` does."""
        with self.database.writing() as connection:
            connection.execute("DELETE FROM receipts WHERE expires_at <= ?", (self.retention.now(),))
            connection.executemany(
                f"INSERT OR REPLACE INTO receipts ({_COLUMNS}, expires_at) VALUES ({_PLACES}, ?)",
                [(*_to_row(receipt), self.retention.expires_at()) for receipt in receipts],
            )

    def get(self, query_id: str) -> Receipt | None:
        query = f"SELECT {_COLUMNS} FROM receipts WHERE query_id = ? AND expires_at > ?"
        rows = self.database.rows(query, (query_id, self.retention.now()))
        return receipt_of(rows[0]) if rows else None

    def since(self, at: str, *, most: int) -> Sequence[Receipt]:
        query = f"SELECT {_COLUMNS} FROM receipts WHERE at >= ? AND expires_at > ? ORDER BY at DESC, query_id LIMIT ?"
        with self.database.reading() as connection:
            return [receipt_of(row) for row in connection.execute(query, (at, self.retention.now(), most))]


@dataclass(frozen=True, slots=True)
class SqliteOutcomes:
    """The port `Outcomes`. Feedback is recorded in one transaction."""

    database: Database

    def record(self, receipt: Receipt, feedback: Feedback, at: str) -> Sequence[Outcome]:
        with self.database.writing() as connection:
            connection.execute(f"INSERT OR IGNORE INTO reports ({_COLUMNS}) VALUES ({_PLACES})", _to_row(receipt))
            if feedback.missing:
                update = "UPDATE reports SET missing = ? WHERE query_id = ?"
                connection.execute(update, (feedback.missing, receipt.query_id))
            return [each for each in feedback.outcomes if _add(connection, receipt, each, at)]

    def of(self, query_id: str) -> ReportedAnswer | None:
        with self.database.reading() as connection:
            return reported_answer(connection, query_id)

    def confirm(self, query_id: str, *, confirmed: bool = True) -> bool:
        update = "UPDATE reports SET confirmed = ? WHERE query_id = ?"
        with self.database.writing() as connection:
            return connection.execute(update, (confirmed, query_id)).rowcount > 0

    def query_ids(self, *, after: str = "") -> Iterator[str]:
        rows = self.database.rows("SELECT query_id FROM reports WHERE query_id > ? ORDER BY query_id", (after,))
        yield from (query_id for (query_id,) in rows)

    def tallies(self, ids: Collection[Id]) -> Mapping[Id, Sequence[Tally]]:
        query = f"SELECT id, caller, successes, failures FROM tallies WHERE id IN {IN} ORDER BY id, caller"
        rows = self.database.rows(query, (as_json(ids),))
        return {
            Id(id): [Tally(caller=caller, successes=good, failures=bad) for _, caller, good, bad in tallied]
            for id, tallied in groupby(rows, key=lambda row: row[0])
        }

    def forget(self, id: Id, *, lessons: bool = False) -> int:
        kept = "" if lessons else f"AND query_id NOT LIKE '{TAUGHT}%'"
        with self.database.writing() as connection:
            connection.execute("DELETE FROM tallies WHERE id = ?", (id,))
            return connection.execute(f"DELETE FROM outcomes WHERE id = ? {kept}", (id,)).rowcount

    def withdraw(self, query_id: str) -> bool:
        with self.database.writing() as connection:
            connection.execute("DELETE FROM outcomes WHERE query_id = ?", (query_id,))
            return connection.execute("DELETE FROM reports WHERE query_id = ?", (query_id,)).rowcount > 0


def reported_answer(connection: sqlite3.Connection, query_id: str) -> ReportedAnswer | None:
    """The outcomes reported on an answer, as a connection sees them."""
    query = f"SELECT {_COLUMNS}, missing, confirmed FROM reports WHERE query_id = ?"
    row = connection.execute(query, (query_id,)).fetchone()
    if row is None:
        return None
    *receipt, missing, confirmed = row
    outcomes = connection.execute("SELECT id, events FROM outcomes WHERE query_id = ? ORDER BY id", (query_id,))
    return ReportedAnswer(
        receipt=receipt_of(receipt),
        events={Id(id): frozenset(map(Event, json.loads(events))) for id, events in outcomes},
        missing=missing,
        confirmed=bool(confirmed),
    )


def _add(connection: sqlite3.Connection, receipt: Receipt, outcome: Outcome, at: str) -> bool:
    """Store and count one event of one result; returns whether it is new."""
    key = (receipt.query_id, outcome.id)
    query = "SELECT events, counted, weight FROM outcomes WHERE query_id = ? AND id = ?"
    events, counted, weight = connection.execute(query, key).fetchone() or ("[]", None, 0.0)
    before = frozenset(map(Event, json.loads(events)))
    if outcome.event in before:
        return False
    after = before | {outcome.event}
    effective = effective_event(after)
    if effective != counted and receipt.caller:
        _count(connection, receipt.caller, outcome.id, counted, -weight)
        counted, weight = effective, weight_at(at)
        _count(connection, receipt.caller, outcome.id, counted, weight)
    connection.execute(
        "INSERT OR REPLACE INTO outcomes (query_id, id, events, counted, weight) VALUES (?, ?, ?, ?, ?)",
        (*key, json.dumps(sorted(after)), counted, weight),
    )
    return True


def _count(connection: sqlite3.Connection, caller: str, id: Id, event: str | None, weight: float) -> None:
    """Add a weight to the tally that an event counts in, if it counts in any."""
    column = {Event.SUCCEEDED: "successes", Event.FAILED: "failures"}.get(Event(event)) if event else None
    if column:
        connection.execute("INSERT OR IGNORE INTO tallies VALUES (?, ?, 0, 0)", (id, caller))
        connection.execute(
            f"UPDATE tallies SET {column} = {column} + ? WHERE id = ? AND caller = ?", (weight, id, caller)
        )


_ANSWERS = "SELECT rowid, at, shown, verdict IN ('none', 'weak') FROM receipts WHERE rowid > ? ORDER BY rowid LIMIT ?"
_COUNTS = f"""
SELECT id, sum(counted = 'selected'), sum(counted = 'succeeded'), sum(counted = 'failed'), sum(counted = 'wrong'),
       max(iif(counted = 'succeeded', weight, NULL)), max(iif(counted IN ('failed', 'wrong'), weight, NULL))
FROM outcomes WHERE id IN {IN} AND counted NOT NULL GROUP BY id
"""
_FAILURES = """
SELECT outcomes.id, counted, weight, text, caller, outcomes.query_id
FROM memory JOIN outcomes ON outcomes.query_id = memory.query_id JOIN reports ON reports.query_id = memory.query_id
WHERE memory.change > (SELECT max(change) FROM memory) - ? AND counted IN ('failed', 'wrong')
ORDER BY memory.change DESC, outcomes.id LIMIT ?
"""
_LATEST_REPORTS = 5_000  # Reported answers among which failures are looked for


@dataclass(frozen=True, slots=True)
class SqliteUseLog:
    """Answers and outcomes in the order in which they were stored, for readers that keep sums.

    The position of an answer is its row's number, that of an outcome the change of its answer (schema.sql).
    """

    database: Readable

    def answers(self, since: int | None, *, most: int) -> ShownAnswers:
        """Up to `most` answers after a position, oldest first; without a position, the latest."""
        [(latest,)] = self.database.rows("SELECT coalesce(max(rowid), 0) FROM receipts")
        position = latest - most if since is None or since > latest else since
        rows = self.database.rows(_ANSWERS, (max(0, position), most))
        answers = [ShownAnswer(at, tuple(json.loads(shown)), bool(unmatched)) for _, at, shown, unmatched in rows]
        return ShownAnswers(rows[-1][0] if rows else max(0, position), answers)

    def changes(self, since: int | None) -> ChangedIds:
        """Every capability with an outcome stored or changed after a position; None: every one with an outcome."""
        [(position,)] = self.database.rows("SELECT coalesce(max(change), 0) FROM memory")
        if since is None:
            rows = self.database.rows("SELECT DISTINCT id FROM outcomes")
        else:
            query = "SELECT DISTINCT outcomes.id FROM memory JOIN outcomes USING (query_id) WHERE change > ?"
            rows = self.database.rows(query, (since,))
        return ChangedIds(position, [Id(id) for (id,) in rows])

    def counts(self, ids: Collection[Id]) -> Mapping[Id, OutcomeCounts]:
        """The counts of these capabilities; those without any are left out."""
        rows = self.database.rows(_COUNTS, (as_json(ids),))
        return {
            Id(id): OutcomeCounts(selected, succeeded, failed, wrong, _time(success), _time(failure))
            for id, selected, succeeded, failed, wrong, success, failure in rows
        }

    def latest_failures(self, *, most: int) -> Sequence[ReportedResult]:
        """Up to `most` results that failed or were wrong, latest first, among the latest reported answers."""
        rows = self.database.rows(_FAILURES, (_LATEST_REPORTS, most))
        return [
            ReportedResult(Id(id), Event(event), time_of_weight(weight), text, caller, query_id)
            for id, event, weight, text, caller, query_id in rows
        ]


def _time(weight: float | None) -> str | None:
    return None if weight is None else time_of_weight(weight)


LATEST = 1_000  # Number of stored answers; older ones are deleted with every flush

_BY_PROVIDER = """
SELECT iif(entry.type = 'array', json_extract(entry.value, '$[0]'), entry.value),
       count(DISTINCT iif(entry.key < shown, answer, NULL)), sum(entry.key = 0 AND shown > 0),
       sum(entry.key < shown) AS times, count(*), entry.type = 'array' AS verified
FROM answers, json_each(answers.providers) AS entry GROUP BY 1, verified ORDER BY times DESC, 1, verified
"""
"""A verified provider is stored as a list with its name, a claimed one as the name alone."""


class SqliteExposure:
    """A bounded number of the latest answers, in the table `answers`. Safe to share between threads.

    `record` only appends to a buffer, so no answer waits for the disk; `flush` inserts a row per answer in one
    transaction. Answers not flushed yet are lost in a crash. The table is written through a `Watch`, which ignores its
    own writes: recording answers does not make the console's list refresh.
    """

    def __init__(self, watch: Watch, clock: Clock, latest: int = LATEST) -> None:
        self._watch, self._clock, self._latest = watch, clock, latest
        self._pending: deque[tuple[str, int, str]] = deque(maxlen=latest)
        self._flushing = threading.Lock()

    def record(self, shortlist: Shortlist) -> None:
        """Count an answer. Returns at once and never fails; storage follows within a second or two."""
        at = datetime.fromisoformat(self._clock.now()).isoformat(timespec="seconds")
        profiles = [result.candidate.profile for result in shortlist.ranked]
        providers = [[each.provider] if each.provider_verified else each.provider for each in profiles]
        self._pending.append((at, min(shortlist.shown, len(providers)), json.dumps(providers, ensure_ascii=False)))

    def flush(self) -> None:
        """Store the answers recorded so far.

        Raises DependencyFailed: the storage cannot be written; the next flush retries.
        """
        surplus = "DELETE FROM answers WHERE answer <= (SELECT max(answer) FROM answers) - ?"
        with self._flushing:
            rows = [self._pending.popleft() for _ in range(len(self._pending))]
            if not rows:
                return
            try:
                with self._watch.writing() as connection:
                    connection.executemany("INSERT INTO answers (at, shown, providers) VALUES (?, ?, ?)", rows)
                    connection.execute(surplus, (self._latest,))
            except DependencyFailed:
                self._pending.extendleft(reversed(rows))
                raise

    def exposure(self) -> Exposure:
        """Counts over the latest answers, including those not flushed. Raises as `flush` does."""
        self.flush()
        with self._watch.reading() as connection:
            count, since, until = connection.execute("SELECT count(*), min(at), max(at) FROM answers").fetchone()
            rows = connection.execute(_BY_PROVIDER).fetchall()
        providers = [ProviderExposure(*row)._replace(verified=bool(row[-1])) for row in rows]
        return Exposure(count, since, until, providers)
