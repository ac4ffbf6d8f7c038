"""Receipts stored in the background, so that no answer waits for a disk or a table: docs/decisions/0047."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import Receipt
from mats.ports import Receipts

LOGGER = logging.getLogger("mats")
_MOST = 1_000  # Receipts in memory; some megabytes
_RETRY_S = 1.0
_CLOSE_S = 5.0


class BatchReceipts(Receipts, Protocol):
    """Receipts that can be stored many at once."""

    def put_all(self, receipts: Sequence[Receipt]) -> None:
        """Store receipts, or replace those of their query ids."""


class BackgroundReceipts:
    """The port `Receipts`: `put` returns at once, one thread stores, `get` sees both. Safe to share between threads.

    The thread waits `gather_s` seconds for more receipts before it stores them, so that it seldom takes time from the
    answers that are being made. A crash loses what is not stored yet. While the store fails, or `outage` gives a
    reason, receipts wait and `put` raises DependencyFailed, so that answers say that they may be lost.
    """

    def __init__(self, store: BatchReceipts, gather_s: float = 0.0, outage: Callable[[], str] = str) -> None:
        self._store, self._gather_s, self._outage = store, gather_s, outage
        self._pending: dict[str, Receipt] = {}
        self._changed = threading.Condition()
        self._storing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._failure = ""

    def put(self, receipt: Receipt) -> None:
        with self._changed:
            if len(self._pending) >= _MOST:
                raise DependencyFailed(f"{_MOST:,} receipts wait already: {self._failure or 'the store is slow'}")
            self._pending[receipt.query_id] = receipt
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="receipts", daemon=True)
                self._thread.start()
            if len(self._pending) == 1:
                self._changed.notify_all()
            if failure := self._failure or self._outage():
                raise DependencyFailed(failure)

    def get(self, query_id: str) -> Receipt | None:
        return self._pending.get(query_id) or self._store.get(query_id)

    def check(self) -> None:
        """Raises DependencyFailed: the store failed at the last attempt; one follows every second."""
        if self._failure:
            raise DependencyFailed(self._failure)

    def flush(self) -> None:
        """Store what is waiting. Raises DependencyFailed: the store did not answer; the receipts stay."""
        with self._storing:
            batch = dict(self._pending)
            if not batch:
                return
            try:
                self._store.put_all(list(batch.values()))
            except DependencyFailed as error:
                self._failure = str(error)
                raise
            self._failure = ""
            with self._changed:
                for query_id, receipt in batch.items():
                    if self._pending.get(query_id) is receipt:
                        del self._pending[query_id]

    def close(self) -> None:
        """Store what is waiting and stop; what cannot be stored is lost."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread:
            self._thread.join(_CLOSE_S)
        try:
            self.flush()
        except DependencyFailed as error:
            LOGGER.warning("%d receipts are lost: %s", len(self._pending), error)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closed)
                if self._gather_s and not self._closed:
                    self._changed.wait(self._gather_s)
                if self._closed:
                    return
            try:
                self.flush()
            except DependencyFailed as error:
                LOGGER.warning("receipts wait: %s", error)
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, timeout=_RETRY_S)
