"""The latest answers in a table, for counting how often each provider is shown."""

import json
import threading
from collections import deque
from datetime import datetime

from mats.adapters.sqlite.database import Watch
from mats.domain.errors import DependencyFailed
from mats.domain.shortlist.rank import Shortlist
from mats.ports import Clock, Exposure, ProviderExposure

LATEST = 1_000
"""Number of stored answers; older ones are deleted with every flush."""

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

        Raises:
            DependencyFailed: the storage cannot be written; the next flush retries.
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
