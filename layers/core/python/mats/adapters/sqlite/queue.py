"""The event queue in SQLite: at-least-once delivery with leases, backoff and dead letters."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mats.adapters.sqlite.database import Database
from mats.domain.capability.capability import Id
from mats.ports import QueuedChange


class QueueDepth(NamedTuple):
    """Number of changes that wait or are being handled, and of dead letters."""

    waiting: int
    dead: int


class DeadLetter(NamedTuple):
    """A change that failed too often, and why."""

    id: Id
    reason: str


_FIELDS = ", ".join(QueuedChange._fields)
_MAX_BACKOFF_S = 300
LEASE_S = 300  # A batch not settled within this time may be taken by another worker (the visibility timeout of SQS)
MAX_ATTEMPTS = 10
"""With exponential backoff, within some 15 minutes. After that a change is a dead letter.

`mats stats` shows dead letters, `mats reconcile` redrives them.
"""


@dataclass(frozen=True, slots=True)
class SqliteQueue:
    """Several processes may take from the queue."""

    database: Database
    holder: str  # Identifies this process: its pid, a colon, random characters

    def take(self, most: int) -> Sequence[QueuedChange]:
        """Lease at most this many due changes, oldest first."""
        now = time.time()
        if not self.database.rows("SELECT 1 FROM events WHERE dead IS NULL AND due <= ? LIMIT 1", (now,)):
            return []
        with self.database.writing(durable=False) as connection:
            rows = connection.execute(
                "UPDATE events SET holder = ?, due = ?, attempts = attempts + 1 WHERE seq IN "
                "(SELECT seq FROM events WHERE dead IS NULL AND due <= ? ORDER BY seq LIMIT ?) "
                f"RETURNING {_FIELDS}",
                (self.holder, now + LEASE_S, now, most),
            ).fetchall()
        return sorted(QueuedChange(*row) for row in rows)

    def peek(self, after: int, most: int) -> Sequence[QueuedChange]:
        """At most this many due changes after a `seq`, oldest first, without a lease."""
        query = f"SELECT {_FIELDS} FROM events WHERE dead IS NULL AND due <= ? AND seq > ? ORDER BY seq LIMIT ?"
        return [QueuedChange(*row) for row in self.database.rows(query, (time.time(), after, most))]

    def settle(self, taken: Sequence[QueuedChange], failed: frozenset[str], reason: str = "") -> None:
        """Delete handled changes; failed ones (by event id) are retried later, or dead after MAX_ATTEMPTS."""
        with self.database.writing() as connection:
            for event in taken:
                if event.event_id not in failed:
                    connection.execute("DELETE FROM events WHERE seq = ?", (event.seq,))
                elif event.attempts >= MAX_ATTEMPTS:
                    connection.execute(
                        "UPDATE events SET dead = ?, holder = NULL WHERE seq = ?", (reason or "failed", event.seq)
                    )
                else:
                    due = time.time() + min(2.0**event.attempts, _MAX_BACKOFF_S)
                    connection.execute("UPDATE events SET due = ?, holder = NULL WHERE seq = ?", (due, event.seq))

    def release_orphans(self) -> None:
        """End the leases of processes that have exited, and those of this process: call it between two batches."""
        holders = self.database.rows("SELECT DISTINCT holder FROM events WHERE holder IS NOT NULL")
        ended = [holder for (holder,) in holders if not _is_other_process(int(holder.partition(":")[0]))]
        if ended:
            with self.database.writing() as connection:
                connection.executemany(
                    "UPDATE events SET holder = NULL, due = 0 WHERE holder = ?", [(holder,) for holder in ended]
                )

    def forget(self, id: Id) -> None:
        """Delete every change of a capability, dead letters included."""
        with self.database.writing() as connection:
            connection.execute("DELETE FROM events WHERE id = ?", (id,))

    def has_unfinished(self, id: Id) -> bool:
        """True if a change of this capability waits, is being handled, or is a dead letter."""
        return bool(self.database.rows("SELECT 1 FROM events WHERE id = ? LIMIT 1", (id,)))

    def depth(self) -> QueueDepth:
        return QueueDepth(*self.database.rows("SELECT count(*) - count(dead), count(dead) FROM events")[0])

    def failing(self) -> int:
        """Number of changes that failed and wait for a retry or are dead letters.

        Leased changes do not count, nor do those without an attempt.
        """
        query = "SELECT count(*) FROM events WHERE dead IS NOT NULL OR (attempts > 0 AND holder IS NULL)"
        return int(self.database.rows(query)[0][0])

    def dead_letters(self) -> Sequence[DeadLetter]:
        """Every dead letter, oldest first."""
        rows = self.database.rows("SELECT id, dead FROM events WHERE dead IS NOT NULL ORDER BY seq")
        return [DeadLetter(*row) for row in rows]

    def retry_at_once(self) -> None:
        """Make failed changes due now, those of dead letters aside."""
        with self.database.writing() as connection:
            connection.execute("UPDATE events SET due = 0 WHERE dead IS NULL AND attempts > 0 AND holder IS NULL")

    def redrive(self) -> int:
        """Put dead letters back into the queue; returns their number."""
        with self.database.writing() as connection:
            return connection.execute(
                "UPDATE events SET dead = NULL, attempts = 0, due = 0 WHERE dead IS NOT NULL"
            ).rowcount


def _is_other_process(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, under another user
    return True
