"""Sync one source: read it, register what is new or changed, report or remove what it no longer lists."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mats.domain.capability.capability import Id, parts
from mats.domain.errors import DependencyFailed, Invalid, PreconditionFailed, StorageUnusable
from mats.domain.profile.assignment import of_operators
from mats.domain.profile.changes import Reason
from mats.domain.profile.sync import SourceRun, TrackedEntry, TrackedSource
from mats.local.imports.importer import DryRunRegistry, Importer, Report
from mats.local.imports.sources import Reading
from mats.ports import Clock, Item, SourceBook, SourceState, SyncTarget, TrustBook
from mats.usecases.sync import Kept, Pruned, SourceSync

Open = Callable[[TrackedSource, str], Reading]
"""Opens a source; the text is the cursor of its last reading, empty to read everything."""


@dataclass(frozen=True, slots=True)
class Synced:
    name: str
    report: Report
    kept: Sequence[Kept]
    changed: Sequence[tuple[Id, Sequence[Reason]]]
    gone: Sequence[Id]  # Listed by the source once and no longer, before a prune
    pruned: Pruned | None
    error: str = ""

    @property
    def needs_attention(self) -> bool:
        """True if it failed, or left something out that it should not have."""
        return bool(self.error or self.report.rejected or (self.pruned and self.pruned.refused))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Brings a registry in step with sources. A failing source keeps its entries, and says why it failed."""

    target: SyncTarget
    book: SourceBook
    clock: Clock
    open: Open
    trust: TrustBook | None = None
    """What a source may not write, unless it was bound to the namespace or wrote there before; None: anything."""

    def __call__(
        self,
        state: SourceState,
        *,
        prune: bool = False,
        force: bool = False,
        full: bool = False,
        advance: Callable[[int], None] = lambda count: None,
    ) -> Synced:
        """Sync one source.

        Args:
            state: The source and its latest outcome.
            prune: Remove what it no longer lists.
            force: Remove even more than a fifth of its entries.
            full: List a source whole that can list what changed since the last sync.
            advance: Called with the number of entries of each batch.

        Raises:
            StorageUnusable: the local registry; what was acknowledged is written.
        """
        name, before = state.source.name, state.run
        sync = SourceSync(self.target, self.book, name, first=not before.succeeded)
        importer, tried = Importer(sync, reserved=self._reservation(sync, state.source)), self.clock.now()
        resumes = before.succeeded and before.namespace == state.source.namespace and not full
        since = before.cursor if resumes else ""
        reading, error = None, ""
        try:
            reading = self.open(state.source, since)
            importer.import_sources(reading.sources, advance)
            error = _problem(importer.report, reading, sync)
            gone = sync.mark_gone(() if error else _missing(importer.report, reading, sync))
            pruned = sync.prune(force=force) if prune and not error else None
        except StorageUnusable:
            raise
        except (DependencyFailed, Invalid) as failure:
            error, gone, pruned = str(failure), (), None
        run = replace(before, tried=tried, error=error)
        if reading is not None and not error:
            cursor = reading.cursor(tried)
            run = SourceRun(tried=tried, succeeded=tried, cursor=cursor, namespace=state.source.namespace)
        self.book.finish(name, run)
        return Synced(name, importer.report, sync.kept, sync.changed, gone, pruned, error)

    def _reservation(self, sync: SourceSync, source: TrackedSource) -> Callable[[Collection[Id]], Collection[Id]]:
        trust = self.trust
        if trust is None or source.namespace:
            return lambda ids: ()

        def find_reserved(ids: Collection[Id]) -> Collection[Id]:
            own = {parts(id)[0] for id, entry in sync.entries.items() if entry.digest}
            return [id for id in of_operators(trust.get(ids)) if parts(id)[0] not in own]

        return find_reserved


def _problem(report: Report, reading: Reading, sync: SourceSync) -> str:
    """Why it is not known what the source lists; empty if it is."""
    if report.unreadable:
        place, faults = report.unreadable[0]
        others = len(report.unreadable) - 1
        more = f" (and {others:,} more)" if others else ""
        where = f"{place.file}: " if not any(place.file in str(fault) for fault in faults) else ""
        return f"{where}{'; '.join(map(str, faults))}{more}"
    if reading.is_whole and not report.listed and not sync.entries:
        return "lists nothing that can be registered"
    return ""


def _missing(report: Report, reading: Reading, sync: SourceSync) -> Collection[Id]:
    if reading.is_whole:
        return [id for id in sync.entries if id not in report.listed]
    return [id for id in sync.entries if id in report.withdrawn - report.listed]


class DryRunTarget(DryRunRegistry):
    """A registry that is compared with, and never written."""

    def remove_same(self, id: Id, item: Item) -> bool:
        if self.get([id]).get(id) != item:
            raise PreconditionFailed(id)
        return True


class DryRunSources:
    """A book of sources that is read, and never written."""

    def __init__(self, book: SourceBook) -> None:
        self.all, self.entries, self.others = book.all, book.entries, book.others

    def add(self, source: TrackedSource) -> None:
        """Does nothing."""

    def remove(self, name: str) -> bool:
        return any(state.source.name == name for state in self.all())

    def record(self, name: str, entries: Mapping[Id, TrackedEntry | None]) -> None:
        """Does nothing."""

    def finish(self, name: str, run: SourceRun) -> None:
        """Does nothing."""


def age(time: str, now: str) -> str:
    """How long ago a time was, in words; empty for no time."""
    if not time:
        return ""
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(time)).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "just now"
