"""The worker: takes changes from the local event queue and enriches them."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import Cause
from mats.edge.changes import ChangeProcessor
from mats.ports import Change, QueuedChange
from mats.usecases.drafts import Pass, ProfileMaker

BATCH = 128  # Events per batch without a writer
_RAW_BATCH = 256  # Events per batch that calls no model: its time is that of its transactions
_AT_ONCE = 2  # Batches in progress where a local encoder does most of the work
MANY = 1_024
"""Waiting events from which on all are made findable before the first is encoded; fewer are complete in seconds."""
_POLL_S = 0.25
_RETRY_S = 5
_STOP_S = 10

LOGGER = logging.getLogger("mats.worker")


def drain(
    local: LocalSystem,
    on_batch: Callable[[int], None] = lambda count: None,
    *,
    on_findable: Callable[[int], None] = lambda count: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Process the events that are due, a batch at a time.

    Where models are called, earlier runs make all that is waiting findable first: many events by words, then, before a
    writer, any number by vectors. After each batch, `on_batch` is called with the number of events that were completed,
    and `on_findable` with the number of those that a run without models has made findable. `stopped` ends the run
    between two batches. Raises StorageUnusable: the registry cannot be written; events stay in the queue.
    """
    queue = local.stores.queue
    queue.release_orphans()
    batch = local.settings.writer_calls if local.models.writer else BATCH  # the writer's concurrent calls
    run = local.profile_maker.begin(probe=bool(local.models.writer))
    if local.models.encoder and not local.models.writer:
        run = replace(run, drafted={})
    processor = replace(local.change_processor, run=run)
    earlier = _earlier_runs(local, run, on_findable)
    with _LastRun(local, processor, on_batch, _AT_ONCE if earlier and not local.models.writer else 1).open() as last:
        while not stopped():
            completed = next((done for run in earlier if (done := run.step(local)) is not None), None)
            if completed is not None:
                on_batch(completed)
            elif taken := queue.take(batch):
                last.begin(taken)
            else:
                break


@dataclass(slots=True)
class _LastRun:
    """The run with every model. While the encoder is busy with a batch, another thread prepares the next."""

    local: LocalSystem
    processor: ChangeProcessor
    on_batch: Callable[[int], None]
    at_once: int  # Batches in progress; a single one is processed by its caller
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_AT_ONCE, "batch"))
    _begun: dict["Future[frozenset[str]]", Sequence[QueuedChange]] = field(default_factory=dict)

    @contextmanager
    def open(self) -> Iterator["_LastRun"]:
        """At the end, also after an error or an interrupt, the batches that were begun are completed."""
        with self._threads:
            yield self
        while self._begun:
            self._finish_one()

    def begin(self, taken: Sequence[QueuedChange]) -> None:
        """Process a batch, now or beside another one."""
        if self.at_once == 1:
            self._settle(taken, _process(self.processor, taken))
            return
        self._begun[self._threads.submit(_process, self.processor, taken)] = taken
        if len(self._begun) == self.at_once:
            self._finish_one()

    def _finish_one(self) -> None:
        done, _ = wait(self._begun, return_when=FIRST_COMPLETED)
        for batch in done:
            self._settle(self._begun.pop(batch), batch.result())

    def _settle(self, taken: Sequence[QueuedChange], failed: frozenset[str]) -> None:
        self.local.stores.queue.settle(taken, failed, "its profile could not be updated; see the log")
        self.on_batch(len(taken) - len(failed))


@dataclass(slots=True)
class _EarlierRun:
    """A run with fewer models over all events, which stay in the queue if a later run is to improve the result."""

    processor: ChangeProcessor
    most: int  # Events per batch
    least: int  # It begins only where so many events are waiting
    on_batch: Callable[[int], None] = lambda count: None  # Called with the number of events of a batch
    seen: int = 0  # The last event of the batch before

    def step(self, local: LocalSystem) -> int | None:
        """Process the next batch; the number of completed events, None if no batch is waiting."""
        queue = local.stores.queue
        too_few = not self.seen and queue.depth().waiting < self.least
        waiting = () if too_few else queue.peek(self.seen, self.most)
        if not waiting:
            return None
        left = _process(self.processor, waiting)
        completed = [event for event in waiting if event.event_id not in left]
        if completed:
            queue.settle(completed, frozenset())
        self.seen = waiting[-1].seq
        self.on_batch(len(waiting))
        return len(completed)


def _earlier_runs(local: LocalSystem, last: Pass, on_findable: Callable[[int], None]) -> list[_EarlierRun]:
    """The run without models, unless that is all there is to do, and the one without a writer; none if there is none.

    A few events are completed at once: an earlier run would only add a revision.
    """
    runs: list[_EarlierRun] = []
    processor = local.change_processor
    if local.models.encoder:
        maker = replace(last.maker, writer=None)
        raw = Pass(maker=maker, vectors=False, later=last.maker, drafted=last.drafted)
        runs.append(_EarlierRun(replace(processor, run=raw), _RAW_BATCH, MANY, on_findable))
    if local.models.writer:
        maker = ProfileMaker(encoder=local.models.encoder, writer=None)
        described_later = Pass(maker=maker, later=local.profile_maker)
        runs.append(_EarlierRun(replace(processor, run=described_later), BATCH, 1))
    return runs


def _process(processor: ChangeProcessor, events: Sequence[QueuedChange]) -> frozenset[str]:
    """Process events; the ids of those that failed."""
    changes = {e.event_id: Change(Id(e.id), Cause(event_id=e.event_id, time=e.time)) for e in events}
    try:
        return frozenset(id for id, result in processor.process(changes).items() if not result.is_final)
    except DependencyFailed:
        raise
    except Exception:
        LOGGER.exception("internal error: events of %s failed", ", ".join(event.id for event in events[:5]))
        return frozenset(changes)


class EnrichmentWorker(threading.Thread):
    """Drains the event queue in the background while a service runs, including events of other processes."""

    def __init__(self, local: LocalSystem) -> None:
        super().__init__(name="worker", daemon=True)
        self._local = local
        self._stopped = threading.Event()
        self.completed = 0  # Events so far

    def run(self) -> None:
        """Drain the queue now and at each poll; if the storage fails, wait longer."""
        while not self._stopped.is_set():
            try:
                drain(self._local, self._count, stopped=self._stopped.is_set)
            except DependencyFailed as error:
                LOGGER.error("the worker cannot use the storage; trying again in %s s: %s", _RETRY_S, error)
                self._stopped.wait(_RETRY_S)
            self._stopped.wait(_POLL_S)

    def _count(self, completed: int) -> None:
        self.completed += completed

    def stop(self, *, completes_batch: bool = False) -> None:
        """Begin no further batch. One that is in progress is waited for, by default a few seconds."""
        self._stopped.set()
        self.join(None if completes_batch else _STOP_S)
