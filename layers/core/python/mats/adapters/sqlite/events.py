"""The local event path: events wait in the file until the handler says they are done."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from mats.adapters.sqlite.database import Database
from mats.domain.capability import Id
from mats.ports import DeadLetter, Event, QueueDepth

_LONGEST_WAIT_S = 300
HELD_S = 300
"""A batch not settled within this time is given to somebody else, as a queue's visibility timeout does."""
MAX_ATTEMPTS = 10
"""Over nearly a quarter of an hour, each wait longer than the last. After as many failures an event is dead.

It is kept aside, shown by `mats stats`, and taken up again by `mats reconcile`.
"""


@dataclass(frozen=True, slots=True)
class SqliteEvents:
    """A queue with at-least-once delivery. Several processes may take from it."""

    database: Database
    holder: str
    """Names this process and no other, ever: its pid, a colon, something random."""

    def take(self, most: int) -> Sequence[Event]:
        """At most this many events, oldest first, held for this process until settled."""
        now = time.time()
        with self.database.reading() as connection:
            if not connection.execute(
                "SELECT 1 FROM events WHERE dead IS NULL AND due <= ? LIMIT 1", (now,)
            ).fetchone():
                return []
        with self.database.writing() as connection:
            rows = connection.execute(
                "UPDATE events SET holder = ?, due = ?, attempts = attempts + 1 WHERE seq IN "
                "(SELECT seq FROM events WHERE dead IS NULL AND due <= ? ORDER BY seq LIMIT ?) "
                "RETURNING seq, event_id, source, change, id, time, attempts",
                (self.holder, now + HELD_S, now, most),
            ).fetchall()
        return sorted(Event(*row) for row in rows)

    def peek(self, after: int, most: int) -> Sequence[Event]:
        """At most this many events later than a `seq` that are due, oldest first; nobody's hold on them changes."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT seq, event_id, source, change, id, time, attempts FROM events "
                "WHERE dead IS NULL AND due <= ? AND seq > ? ORDER BY seq LIMIT ?",
                (time.time(), after, most),
            ).fetchall()
        return [Event(*row) for row in rows]

    def settle(self, taken: Sequence[Event], failed: frozenset[str], reason: str = "") -> None:
        """Forget what is done; what failed (by event id) comes again later, or is dead after MAX_ATTEMPTS."""
        with self.database.writing() as connection:
            for event in taken:
                if event.event_id not in failed:
                    connection.execute("DELETE FROM events WHERE seq = ?", (event.seq,))
                elif event.attempts >= MAX_ATTEMPTS:
                    connection.execute(
                        "UPDATE events SET dead = ?, holder = NULL WHERE seq = ?", (reason or "failed", event.seq)
                    )
                else:
                    due = time.time() + min(2.0**event.attempts, _LONGEST_WAIT_S)
                    connection.execute("UPDATE events SET due = ?, holder = NULL WHERE seq = ?", (due, event.seq))

    def release_orphans(self) -> None:
        """Take back what nobody is at any more; it is done again. To be called between two batches.

        That is what processes hold that have ended, and what this one holds of a batch that it could not settle.
        """
        with self.database.reading() as connection:
            holders = connection.execute("SELECT DISTINCT holder FROM events WHERE holder IS NOT NULL").fetchall()
        idle = [holder for (holder,) in holders if not _alive(int(holder.partition(":")[0]))]
        if idle:
            with self.database.writing() as connection:
                connection.executemany(
                    "UPDATE events SET holder = NULL, due = 0 WHERE holder = ?", [(holder,) for holder in idle]
                )

    def has_unfinished(self, id: Id) -> bool:
        with self.database.reading() as connection:
            return connection.execute("SELECT 1 FROM events WHERE id = ? LIMIT 1", (id,)).fetchone() is not None

    def depth(self) -> QueueDepth:
        with self.database.reading() as connection:
            row = connection.execute("SELECT count(*) - count(dead), count(dead) FROM events").fetchone()
        return QueueDepth(*row)

    def failing(self) -> int:
        """How many were tried and are not done: they wait for another try, or are dead.

        What somebody handles just now is not among them, nor what was announced since and nobody has tried yet.
        """
        with self.database.reading() as connection:
            query = "SELECT count(*) FROM events WHERE dead IS NOT NULL OR (attempts > 0 AND holder IS NULL)"
            return int(connection.execute(query).fetchone()[0])

    def dead_letters(self) -> Sequence[DeadLetter]:
        with self.database.reading() as connection:
            rows = connection.execute("SELECT id, dead FROM events WHERE dead IS NOT NULL ORDER BY seq").fetchall()
        return [DeadLetter(*row) for row in rows]

    def redrive(self) -> int:
        """Let dead events try again; how many there were."""
        with self.database.writing() as connection:
            return connection.execute(
                "UPDATE events SET dead = NULL, attempts = 0, due = 0 WHERE dead IS NOT NULL"
            ).rowcount


def _alive(pid: int) -> bool:
    """Whether another process has this id."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is there, and somebody else's
    return True
