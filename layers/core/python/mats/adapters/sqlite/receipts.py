"""Receipts and reported outcomes in SQLite."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mats.adapters.clock import Retention
from mats.adapters.sqlite.database import Database, Watch
from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import TAUGHT, Event, Feedback, Outcome, Receipt, ReportedAnswer

_FIELDS = (
    "query_id", "at", "caller", "audiences", "text", "shown", "verdict", "nearest", "narrowed", "kinds", "encoder",
)  # fmt: skip
_LISTS = ("audiences", "shown", "kinds")
_COLUMNS = ", ".join((*_FIELDS, "vector"))
_PLACES = ", ".join("?" * 12)


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
        """The receipts from a time on (ISO 8601 in UTC), the latest first."""
        query = f"SELECT {_COLUMNS} FROM receipts WHERE at >= ? AND expires_at > ? ORDER BY at DESC, query_id LIMIT ?"
        with self.database.reading() as connection:
            return [receipt_of(row) for row in connection.execute(query, (at, self.retention.now(), most))]


@dataclass(frozen=True, slots=True)
class SqliteOutcomes:
    """The port `Outcomes`. Feedback is recorded in one transaction."""

    database: Database

    def record(self, receipt: Receipt, feedback: Feedback) -> Sequence[Outcome]:
        with self.database.writing() as connection:
            connection.execute(f"INSERT OR IGNORE INTO reports ({_COLUMNS}) VALUES ({_PLACES})", _to_row(receipt))
            if feedback.missing:
                update = "UPDATE reports SET missing = ? WHERE query_id = ?"
                connection.execute(update, (feedback.missing, receipt.query_id))
            return [each for each in feedback.outcomes if _add(connection, receipt.query_id, each)]

    def of(self, query_id: str) -> ReportedAnswer | None:
        query = f"SELECT {_COLUMNS}, missing, confirmed FROM reports WHERE query_id = ?"
        with self.database.reading() as connection:
            row = connection.execute(query, (query_id,)).fetchone()
            outcomes = connection.execute("SELECT id, events FROM outcomes WHERE query_id = ? ORDER BY id", (query_id,))
            events = {Id(id): frozenset(map(Event, json.loads(listed))) for id, listed in outcomes}
        if row is None:
            return None
        *receipt, missing, confirmed = row
        return ReportedAnswer(receipt=receipt_of(receipt), events=events, missing=missing, confirmed=bool(confirmed))

    def confirm(self, query_id: str, *, confirmed: bool = True) -> bool:
        update = "UPDATE reports SET confirmed = ? WHERE query_id = ?"
        with self.database.writing() as connection:
            return connection.execute(update, (confirmed, query_id)).rowcount > 0

    def query_ids(self, *, after: str = "") -> Iterator[str]:
        rows = self.database.rows("SELECT query_id FROM reports WHERE query_id > ? ORDER BY query_id", (after,))
        yield from (query_id for (query_id,) in rows)

    def forget(self, id: Id, *, lessons: bool = False) -> int:
        kept = "" if lessons else f"AND query_id NOT LIKE '{TAUGHT}%'"
        with self.database.writing() as connection:
            return connection.execute(f"DELETE FROM outcomes WHERE id = ? {kept}", (id,)).rowcount

    def withdraw(self, query_id: str) -> bool:
        with self.database.writing() as connection:
            connection.execute("DELETE FROM outcomes WHERE query_id = ?", (query_id,))
            return connection.execute("DELETE FROM reports WHERE query_id = ?", (query_id,)).rowcount > 0

    def withdraw_of(self, caller: str) -> int:
        with self.database.writing() as connection:
            query = "SELECT query_id FROM reports WHERE caller = ? AND NOT confirmed"
            found = connection.execute(query, (caller,)).fetchall()
            connection.executemany("DELETE FROM outcomes WHERE query_id = ?", found)
            connection.executemany("DELETE FROM reports WHERE query_id = ?", found)
            return len(found)


def _add(connection: sqlite3.Connection, query_id: str, outcome: Outcome) -> bool:
    """Store one event of one result; returns whether it is new."""
    query = "SELECT events FROM outcomes WHERE query_id = ? AND id = ?"
    (events,) = connection.execute(query, (query_id, outcome.id)).fetchone() or ("[]",)
    before = frozenset(map(Event, json.loads(events)))
    if outcome.event in before:
        return False
    row = (query_id, outcome.id, json.dumps(sorted(before | {outcome.event})))
    connection.execute("INSERT OR REPLACE INTO outcomes (query_id, id, events) VALUES (?, ?, ?)", row)
    return True
