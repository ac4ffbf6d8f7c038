"""Sync one source: read it, register what is new or changed, report or remove what it no longer lists.

Each write is recorded before it is made, with the content that it replaces. So a sync that was killed at any point
knows its own writes, and repeating it completes them. docs/decisions/0042.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from mats.domain.capability.capability import Id, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, Invalid, PreconditionFailed, RegistrationInvalid, StorageUnusable
from mats.domain.profile.assignment import of_operators
from mats.domain.profile.changes import Reason, changes_of
from mats.domain.profile.origin import Placed
from mats.domain.profile.sync import (
    DESCRIBING,
    SourceRun,
    Step,
    TrackedEntry,
    TrackedSource,
    content_digest,
    exceeds_guard,
    merge,
    next_step,
    take_over,
)
from mats.local.imports.importer import Importer, Report
from mats.local.imports.sources import Reading
from mats.ports import Clock, Item, SourceBook, SourceState, SyncTarget, TrustBook


class Kept(NamedTuple):
    """An entry that a sync leaves as it is in the registry, and why."""

    id: Id
    reason: str


class Pruned(NamedTuple):
    removed: Sequence[Id]
    kept: Sequence[Kept]
    refused: str = ""  # Why nothing was removed


_EDITED = (
    "how it is called was changed here since the last sync, so that it stays; `mats remove` it to take the source's"
)


@dataclass
class SourceSync:
    """One source and the registry it goes to; an importer writes to it.

    Raises whatever the registry and the book raise; everything acknowledged before is kept.
    """

    target: SyncTarget
    book: SourceBook
    name: str
    first: bool = False  # True if no sync of the source was tried before
    trust: TrustBook | None = None
    """The trust that keeps a source from writing and owning entries; None: it may write all."""
    namespace: str = ""  # The one that it is bound to
    kept: list[Kept] = field(default_factory=list)
    changed: list[tuple[Id, Sequence[Reason]]] = field(default_factory=list)
    """Entries that the sync overwrote, with their changes; dangerous changes of rated entries are held later."""

    @cached_property
    def entries(self) -> dict[Id, TrackedEntry]:
        """The entries that came from the source, read once."""
        return dict(self.book.entries(self.name))

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        return self.target.get(ids)

    def find_reserved(self, ids: Collection[Id]) -> Collection[Id]:
        """Those of the ids that operators trust, unless the source is bound to the namespace or wrote there before."""
        if self.namespace or not (trusted := self._find_trusted(ids)):
            return ()
        own = {parts(id)[0] for id, entry in self.entries.items() if entry.digest}
        return [id for id in trusted if parts(id)[0] not in own]

    def _find_trusted(self, ids: Collection[Id]) -> Collection[Id]:
        return of_operators(self.trust.get(ids)) if self.trust else ()

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        """Write what is new or changed at the source; what others wrote stays, and counts as unchanged."""
        listed = {registration.id: registration for registration in registrations}
        stored = self.target.get(list(listed))
        others = self.book.others(self.name, list(listed))
        placed: dict[Id, Placed] = dict.fromkeys(self.find_reserved(list(listed)), Placed.UNCHANGED)
        noted: dict[Id, TrackedEntry | None] = dict.fromkeys(placed)
        writes: dict[Id, TrackedEntry] = {}
        for id, registration in listed.items():
            if id in placed:
                continue
            item, digest = stored.get(id), content_digest(registration.item())
            if item is not None and item.get("kind") != registration.kind:
                placed[id], noted[id] = Placed.OTHER_KIND, self._own(id)._replace(gone=False)
                continue
            before = content_digest(item) if item is not None else None
            step = next_step(digest, before, self.entries.get(id), list(others.get(id, {}).values()), first=self.first)
            own = self._own(id)
            chosen, replaced = registration, before if before and own.wrote(before) else ""
            if item is not None and step is Step.EDITED and (merged := self._merge(item, registration)):
                chosen, replaced = merged, own.digest
                step = Step.KEEP if content_digest(merged.item()) == before else Step.WRITE
            elif item is not None and step is Step.WRITE and self.first and (not own.digest or own.previous == before):
                chosen, replaced = self._take_over(item, registration), before or ""
                step = Step.KEEP if content_digest(chosen.item()) == before else Step.WRITE
            if step is Step.WRITE:
                listed[id] = chosen
                self._class(item, chosen)
                writes[id] = TrackedEntry(digest, replaced)
                continue
            placed[id] = Placed.UNCHANGED
            noted[id] = TrackedEntry(digest) if step is Step.KEEP else self._own(id)._replace(gone=False)
            self._explain(step, id, others.get(id, {}))
        self._record({**noted, **writes})
        placed |= self.target.put([listed[id] for id in writes]) if writes else {}
        refused = {id: TrackedEntry() for id in writes if placed[id] is Placed.OTHER_KIND}
        self._record({id: entry._replace(previous="") for id, entry in writes.items()} | refused)
        return placed

    def _merge(self, item: Item, registration: Registration) -> Registration | None:
        """What the source lists, with what was edited here; None if that cannot be told, or would not be valid."""
        merged = merge(registration.item(), item, self._own(registration.id))
        with suppress(RegistrationInvalid):
            found = Registration.parse(merged)
            edited = [name for name in DESCRIBING if getattr(found, name) != getattr(registration, name)]
            if edited:
                self.kept.append(Kept(found.id, f"keeps what was edited here: {', '.join(edited)}"))
            return found
        return None

    def _take_over(self, item: Item, registration: Registration) -> Registration:
        """The source's registration, completed from the registry; reports what is kept and what is replaced."""
        listed, found = registration.item(), registration
        with suppress(RegistrationInvalid):
            found = Registration.parse(take_over(listed, item))
        kept = [name for name in DESCRIBING if getattr(found, name) != getattr(registration, name)]
        replaced = [name for name in DESCRIBING if name in item and item[name] != found.item().get(name)]
        told = [f"{verb} {', '.join(names)}" for verb, names in (("keeps", kept), ("replaces", replaced)) if names]
        if told:
            self.kept.append(Kept(found.id, f"the first sync {' and '.join(told)}"))
        return found

    def _class(self, item: Item | None, registration: Registration) -> None:
        with suppress(RegistrationInvalid):
            if item is not None:
                self.changed.append((registration.id, changes_of(Registration.parse(item), registration)))

    def _own(self, id: Id) -> TrackedEntry:
        return self.entries.get(id, TrackedEntry())

    def _explain(self, step: Step, id: Id, others: Mapping[str, TrackedEntry]) -> None:
        if step is Step.EDITED:
            self.kept.append(Kept(id, _EDITED))
        elif step is Step.ELSEWHERE:
            writer = next(name for name, entry in others.items() if entry.digest and not entry.gone)
            self.kept.append(Kept(id, f"comes from the source {writer}"))

    def _record(self, entries: Mapping[Id, TrackedEntry | None]) -> None:
        changed = {id: entry for id, entry in entries.items() if self.entries.get(id) != entry}
        if changed:
            self.book.record(self.name, changed)
        for id, entry in changed.items():
            if entry is None:
                self.entries.pop(id, None)
            else:
                self.entries[id] = entry

    def mark_gone(self, ids: Collection[Id]) -> Sequence[Id]:
        """Record that the source no longer lists these; every entry that it no longer lists, in order of id."""
        self._record({id: self.entries[id]._replace(gone=True) for id in ids if id in self.entries})
        return sorted(id for id, entry in self.entries.items() if entry.gone)

    def prune(self, *, force: bool = False) -> Pruned:
        """Remove what the source no longer lists, unless that is more than a fifth of its entries."""
        gone = [id for id, entry in self.entries.items() if entry.gone]
        if exceeds_guard(len(gone), len(self.entries)) and not force:
            refusal = f"{len(gone):,} of {len(self.entries):,} entries are more than a fifth; --force removes them"
            return Pruned((), (), refusal)
        return self._remove(sorted(gone))

    def release(self, ids: Collection[Id]) -> None:
        """Forget entries; another source that lists one of them inherits it, unless operators trust it."""
        for name, heirs in self._heirs(ids).items():
            self.book.record(name, heirs)
        self._record(dict.fromkeys(ids))

    def _remove(self, ids: Sequence[Id]) -> Pruned:
        """Each by itself: the entry is forgotten after the item is removed, so a repetition completes it."""
        removed: list[Id] = []
        kept: list[Kept] = []
        stored = self.target.get(ids) if ids else {}
        others = self.book.others(self.name, ids) if ids else {}
        for id in ids:
            listing = next((name for name, entry in others.get(id, {}).items() if not entry.gone), None)
            if listing is not None:
                kept.append(Kept(id, f"the source {listing} lists it, too"))
            elif id in stored and not self._remove_ours(id, stored[id]):
                if self.entries[id].digest:
                    kept.append(Kept(id, "was written by someone else since"))
            elif id in stored:
                removed.append(id)
        self.release(ids)
        return Pruned(removed, kept)

    def _remove_ours(self, id: Id, item: Item) -> bool:
        if not self._own(id).wrote(content_digest(item)):
            return False
        try:
            self.target.remove_same(id, item)
        except PreconditionFailed:
            return False
        return True

    def _heirs(self, ids: Collection[Id]) -> dict[str, dict[Id, TrackedEntry]]:
        found: dict[str, dict[Id, TrackedEntry]] = {}
        trusted = frozenset(self._find_trusted(ids))
        for id, others in (self.book.others(self.name, ids) if ids else {}).items():
            mine = TrackedEntry() if id in trusted else self._own(id)
            for name, entry in others.items():
                if mine.digest and not entry.digest and not entry.gone:
                    found.setdefault(name, {})[id] = TrackedEntry(mine.digest, mine.previous)
                    break
        return found


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
    def edits(self) -> Sequence[Kept]:
        """Entries that stay as they are. Others in `kept` are changed, and keep what was edited here."""
        changed = {id for id, _ in self.changed}
        return [entry for entry in self.kept if entry.id not in changed]

    @property
    def counts(self) -> Mapping[str, int]:
        """Each accepted entry once."""
        counts = self.report.counts
        return {**counts, Placed.UNCHANGED: counts[Placed.UNCHANGED] - len(self.edits)}

    @property
    def needs_attention(self) -> bool:
        """True if it failed, or left something out that it should not have."""
        return bool(self.error or self.report.rejected or self.report.problem or (self.pruned and self.pruned.refused))


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
        """Sync one source; `advance` is called with the number of entries of each batch.

        To `prune` removes what it no longer lists, by `force` even more than a fifth of its entries; `full` lists whole
        a source that can list what changed. Raises StorageUnusable: the local registry; what was acknowledged stays.
        """
        name, before = state.source.name, state.run
        bound = state.source.namespace
        sync = SourceSync(self.target, self.book, name, not before.tried, self.trust, bound)
        importer, tried = Importer(sync, reserved=sync.find_reserved), self.clock.now()
        resumes = before.succeeded and before.namespace == bound and not full
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
            run = SourceRun(tried=tried, succeeded=tried, cursor=cursor, namespace=bound)
        self.book.finish(name, run)
        return Synced(name, importer.report, sync.kept, sync.changed, gone, pruned, error)


_NAMED = 5  # Unread documents or servers that are named, beside the first


def _problem(report: Report, reading: Reading, sync: SourceSync) -> str:
    """Why it is not known what the source lists; empty if it is."""
    if report.unreadable:
        place, faults = report.unreadable[0]
        others = [f"{one.file}{one.where and f':{one.where}'}" for one, _ in report.unreadable[1:]]
        more = f" (also unread: {', '.join(others[:_NAMED])}{', …' if others[_NAMED:] else ''})" if others else ""
        where = f"{place.file}: " if not any(place.file in str(fault) for fault in faults) else ""
        return f"{where}{'; '.join(map(str, faults))}{more}"
    if reading.is_whole and not report.listed and not sync.entries:
        return "lists nothing that can be registered"
    return ""


def _missing(report: Report, reading: Reading, sync: SourceSync) -> Collection[Id]:
    if reading.is_whole:
        return [id for id in sync.entries if id not in report.listed]
    return [id for id in sync.entries if id in report.withdrawn - report.listed]


class DryRunSources:
    """A book of sources that is read, and never written."""

    def __init__(self, book: SourceBook) -> None:
        self.all, self.entries, self.others = book.all, book.entries, book.others

    def add(self, source: TrackedSource) -> None:
        """No-op: nothing is written."""

    def remove(self, name: str) -> bool:
        return any(state.source.name == name for state in self.all())

    def record(self, name: str, entries: Mapping[Id, TrackedEntry | None]) -> None:
        """No-op: nothing is written."""

    def finish(self, name: str, run: SourceRun) -> None:
        """No-op: nothing is written."""
