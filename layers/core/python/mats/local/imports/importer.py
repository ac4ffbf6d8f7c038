"""Register values from any source in batches; reject invalid ones with every fault. Can be interrupted and repeated."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, Invalid, KindConflict, PreconditionFailed, RegistrationInvalid, RequestInvalid
from mats.domain.profile import origin
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned, row_keys
from mats.domain.profile.origin import Placed, fingerprint, version_of
from mats.domain.profile.profile import Profile
from mats.domain.profile.sync import content_digest
from mats.domain.protocols.protocol import EMPTY, MappedValue, Source, id_of_item
from mats.domain.protocols.values import Json, value_at
from mats.local.imports import formats
from mats.local.imports.exports import held_id, is_held_line, is_trust_row, parse_held, parse_trust
from mats.local.imports.files import Location, Skipped, Stream
from mats.ports import ImportTarget, Item, ProfileStore, Stored, TrustBook

BATCH = 256  # Registrations per transaction, acknowledged together
_MOST_EMPTY = 10  # Entries, of which one may be empty
COUNTED = (Placed.NEW, Placed.CHANGED, Placed.UNCHANGED)  # The outcomes of registrations that were accepted


class Finding(NamedTuple):
    """Faults of a rejected value, or notes on one that was registered or skipped."""

    place: Location
    faults: Sequence[Fault]

    @property
    def text(self) -> str:
        return "; ".join(each.message if each.attribute == self.place.where else str(each) for each in self.faults)

    def to_json(self, key: str = "faults") -> dict[str, Any]:
        return {**self.place._asdict(), key: [fault._asdict() for fault in self.faults]}


RESERVED = (
    "operators trust {} or its namespace: they register it from a file on the machine of the registry, bind a "
    "source to the namespace with --namespace, or send a token with the scope operate to its service"
)

_ELSEWHERE = "in the registry of the export: import it by `--with-trust` into a registry without it, or"
_WAITS = f"{{}} waits for an operator {_ELSEWHERE} decide there and export again"
_WAS_REJECTED = f"{{}} has a rejected change {_ELSEWHERE} register the text that is shown there and export again"


@dataclass(slots=True)
class Report:
    unread: int = 0  # Documents that were rejected as a whole: damaged, or of no known format
    placed: Counter[Placed] = field(default_factory=Counter)
    rejected: list[Finding] = field(default_factory=list)
    noted: list[Finding] = field(default_factory=list)
    passed_over: list[tuple[str, str]] = field(default_factory=list)
    """Files of a folder that are of no known format, and the reason."""
    registered: list[tuple[Id, Placed, Location]] = field(default_factory=list)
    """Registrations of documents, and what lines changed; other lines are counted only."""
    trust: Counter[str] = field(default_factory=Counter)
    """Numbers of rows of trust that were `assigned`, `unchanged` or `passed_over`."""
    listed: set[str] = field(default_factory=set)  # Ids of registrations and rejections
    withdrawn: set[str] = field(default_factory=set)  # Ids that a source says it no longer offers
    empty: list[Id] = field(default_factory=list)  # Operations of which their documents say nothing
    unreadable: list[Finding] = field(default_factory=list)
    """Rejections without an id, such as files that cannot be read."""

    @property
    def rows(self) -> int:
        """How many registrations were read, those that were rejected among them."""
        return sum(self.counts.values()) + len(self.rejected) - self.unread

    @property
    def counts(self) -> dict[str, int]:
        return {outcome.value: self.placed[outcome] for outcome in COUNTED}

    @property
    def problem(self) -> str:
        """Why this is no import to keep, though nothing was rejected: over a tenth of it came out empty."""
        accepted = sum(self.counts.values())
        if not accepted or len(self.empty) * _MOST_EMPTY <= accepted:
            return ""
        share = f"{len(self.empty):,} of {accepted:,} are empty, without text, inputs or responses"
        return f"{share}, such as {self.empty[0]}: if they are in other files, bundle all into one"

    def distinct_rejections(self) -> Iterator[tuple[Finding, int]]:
        """The first rejection of each file for the same faults, and the number of further ones."""
        alike = Counter((place.file, tuple(faults)) for place, faults in self.rejected)
        for finding in self.rejected:
            if count := alike.pop((finding.place.file, tuple(finding.faults)), 0):
                yield finding, count - 1

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            **({"unread": self.unread} if self.unread else {}),
            **self.counts,
            **({"empty": self.empty} if self.empty else {}),
            **({"trust": dict(self.trust)} if self.trust else {}),
            "rejected": [finding.to_json() for finding in self.rejected],
            "notes": [finding.to_json("notes") for finding in self.noted],
            "passed_over": [{"file": file, "reason": reason} for file, reason in self.passed_over],
            "registered": [
                {"id": id, "placed": placed, "file": place.file, "where": place.where}
                for id, placed, place in self.registered
            ],
        }


def check_namespace(namespace: str, attribute: str) -> None:
    """Reject an invalid namespace once, before every row has this fault; empty is none.

    Raises RequestInvalid: with the faults of `attribute`.
    """
    try:
        if namespace:
            Registration.parse({"namespace": namespace, "name": "x", "kind": "tool"})
    except RegistrationInvalid as error:
        raise RequestInvalid([Fault(attribute, fault.message) for fault in error.faults]) from error


@dataclass(slots=True)
class DryRunRegistry:
    """An import that writes nothing: collects the items and compares them with `registry`, if there is one."""

    registry: ImportTarget | None = None
    items: dict[Id, Item] = field(default_factory=dict)
    placed: dict[Id, Placed] = field(default_factory=dict)

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        stored = dict(self.registry.get(ids)) if self.registry else {}
        return stored | {id: self.items[id] for id in ids if id in self.items}

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        before = self.get([registration.id for registration in registrations])
        known = {id: version_of(item) for id, item in before.items()}
        placed = {r.id: origin.place(known.get(r.id), version_of(r.item())) for r in registrations}
        self.items |= {r.id: r.item() for r in registrations if placed[r.id] is not Placed.OTHER_KIND}
        self.placed |= placed
        return placed

    def remove_same(self, id: Id, item: Item) -> bool:
        if self.get([id]).get(id) != item:
            raise PreconditionFailed(id)
        return True


@dataclass(slots=True)
class Importer:
    registry: ImportTarget
    trust: TrustBook | None = None  # Where rows of trust go; None: they and what is held are passed over
    profiles: ProfileStore | None = None  # Where profiles of what is held go, if rows of trust do
    reserved: Callable[[Collection[Id]], Collection[Id]] = lambda ids: ()
    """Ids that this source may not write, because operators trust them or their namespace; none if operators import."""
    refusals: Mapping[Id, Sequence[Fault]] = field(default_factory=dict)  # What the registry refused, as puts go on
    report: Report = field(default_factory=Report)
    _assigned: dict[Id, Assigned] = field(default_factory=dict)
    _newly_rated: set[Id] = field(default_factory=set)  # Keys of rows of trust that rate what nobody had rated here
    _held: dict[str, Profile | None] = field(default_factory=dict)
    """By id, the profile that is shown while the registration is held; None if there is none to show here."""
    _refused: set[str] = field(default_factory=set)  # Ids of those that an operator rejected
    _first: dict[Id, tuple[Location, str]] = field(default_factory=dict)
    """Location and fingerprint of the first registration under each id."""

    def import_sources(
        self, sources: Iterable[tuple[Source, Stream]], acknowledge: Callable[[int], None] = lambda count: None
    ) -> None:
        """Register the values of sources; `acknowledge` is called with the size of each batch once it is written.

        Raises StorageUnusable: the current batch is not written; everything acknowledged is.
        """
        for source, values in sources:
            self._import(source, values, acknowledge)

    def _import(self, source: Source, values: Stream, acknowledge: Callable[[int], None]) -> None:
        batch: list[tuple[Location, Registration]] = []
        pending = 0
        for place, value in values:
            if isinstance(value, Skipped):
                self.report.passed_over.append((place.file, value.reason))
                continue
            is_mapped = isinstance(value, MappedValue)
            if isinstance(value, Invalid):
                self.report.unread += not place.line
                self._reject(place, value.faults)
                continue
            if place.line and (is_trust_row(value) or is_held_line(value)):
                self._take(place, value)
                continue
            self.report.unread += not (place.line or is_mapped or formats.detect_format(value))
            stated = id_of_item(value) if place.line and isinstance(value, Mapping) else ""
            for mapped in [value] if is_mapped else formats.map_value(value, source, is_line=place.line > 0):
                self._sort(place._replace(where=mapped.where), self._keep_held(stated, mapped), batch)
                pending += 1
                if pending >= BATCH:
                    self._put(batch)
                    acknowledge(pending)
                    batch, pending = [], 0
        self._put(batch)
        acknowledge(pending)

    def _keep_held(self, stated: str, mapped: MappedValue) -> MappedValue:
        """The value; one that waits in its registry is refused where it is to have another id here."""
        registration = mapped.registration
        if stated not in self._held or registration is None or registration.id == stated:
            return mapped
        return MappedValue(mapped.where, faults=(self._why_held(stated),), id=registration.id)

    def _why_held(self, id: str) -> Fault:
        return Fault("", (_WAS_REJECTED if id in self._refused else _WAITS).format(id))

    def _take(self, place: Location, value: Json) -> None:
        """Note what operators decided in the registry of an export, for the registrations of later lines."""
        try:
            if is_trust_row(value):
                if self.trust is None:
                    self.report.trust["passed_over"] += 1
                else:
                    self._assigned.update([parse_trust(value)])
            else:
                self._held[held_id(value)] = None
                self._refused |= {held_id(value)} if value_at(value, "held", "held", "rejected") is True else set()
                if self.profiles:
                    self._held[held_id(value)] = parse_held(value)
        except Invalid as error:
            self.report.rejected.append(Finding(place, error.faults))

    def _assign(self) -> None:
        """Write the rows of trust that are not stored yet."""
        assigned, self._assigned = self._assigned, {}
        before = self.trust.rows(list(assigned)) if self.trust and assigned else {}
        for key, row in {key: before.get(key, row).take_over(row) for key, row in assigned.items()}.items():
            changed = before.get(key) != row
            if row.is_rated and not before.get(key, NOTHING_ASSIGNED).is_rated:
                self._newly_rated.add(key)
            self.report.trust["assigned" if changed else "unchanged"] += 1
            if changed and self.trust:
                self.trust.put(key, row)

    def _approve(self, registrations: Sequence[Registration]) -> None:
        """Approve what an export rates where other content is here, which its trust is not for."""
        if not self.trust:
            return
        given = [each for each in registrations if not self._newly_rated.isdisjoint(row_keys(each.id))]
        stored = self.registry.get([each.id for each in given]) if given else {}
        digests = {each.id: fingerprint(each.item()) for each in given if each.id in stored}
        others = [id for id, digest in digests.items() if fingerprint(stored[id]) != digest]
        rows = self.trust.rows(others) if others else {}
        for id in others:
            self.trust.put(id, rows.get(id, NOTHING_ASSIGNED).approve(digests[id]))

    def _hold(self, registrations: Sequence[Registration]) -> Collection[Id]:
        """Save what is shown while registrations wait for an operator; the ids of those that would not wait here.

        An entry that is here already has a profile of its own.
        """
        held = {each.id: each for each in registrations if each.id in self._held}
        stored = self.registry.get(list(held)) if held else {}
        waiting = [
            id for id, each in held.items() if id not in stored or fingerprint(stored[id]) != fingerprint(each.item())
        ]
        kept = self.profiles.get(waiting) if self.profiles and waiting else {}
        refused, saved = list[Id](), list[Stored]()
        for id in waiting:
            shown, here = self._held[id], kept[id].profile if id in kept else None
            # one here that waits for the same is what a killed import has left: it is written again
            if shown is None or (here and here.findable and here.held != shown.held):
                refused.append(id)
            else:
                saved.append(Stored(shown.after(here.rev if here else 0)))
        if self.profiles and saved:
            self.profiles.save(saved)
        return refused

    def _sort(self, place: Location, mapped: MappedValue, batch: list[tuple[Location, Registration]]) -> None:
        """Add a registration to the batch, faults and notes to the report.

        Of several registrations under one id the first counts; an equal one later counts as unchanged.
        """
        if mapped.notes:
            self.report.noted.append(Finding(place, mapped.notes))
        if mapped.registration is None:
            if mapped.faults:
                self._reject(place, mapped.faults, mapped.id)
            elif mapped.id:
                self.report.withdrawn.add(mapped.id)
            return
        id, digest = mapped.registration.id, fingerprint(mapped.registration.item())
        self.report.listed.add(id)
        first, before = self._first.setdefault(id, (place, digest))
        if first is place:
            batch.append((place, mapped.registration))
            self.report.empty += [id] if EMPTY in mapped.notes else []
        elif before == digest:
            self.report.placed[Placed.UNCHANGED] += 1
        else:
            self.report.rejected.append(Finding(place, [Fault("name", f"{id} is in {first} already")]))

    def _reject(self, place: Location, faults: Sequence[Fault], id: str = "") -> None:
        self.report.rejected.append(Finding(place, faults))
        if id:
            self.report.listed.add(id)
        else:
            self.report.unreadable.append(self.report.rejected[-1])

    def _put(self, batch: Sequence[tuple[Location, Registration]]) -> None:
        self._assign()  # before what it concerns
        waiting = self._hold([registration for _, registration in batch])
        reserved = self.reserved([registration.id for _, registration in batch]) if batch else ()
        stored = {id: content_digest(item) for id, item in self.registry.get(reserved).items()} if reserved else {}
        free = []
        for place, registration in batch:
            if registration.id in waiting:
                self.report.rejected.append(Finding(place, [self._why_held(registration.id)]))
            elif registration.id in reserved and stored.get(registration.id) != content_digest(registration.item()):
                self.report.rejected.append(Finding(place, [Fault("namespace", RESERVED.format(registration.id))]))
            else:
                free.append((place, registration))
        self._approve([registration for _, registration in free])
        placed = self.registry.put([registration for _, registration in free]) if free else {}
        for place, registration in free:
            id, faults = registration.id, self.refusals.get(registration.id)
            if faults or placed[id] is Placed.OTHER_KIND:
                self.report.rejected.append(Finding(place, faults or KindConflict(id).faults))
                continue
            self.report.placed[placed[id]] += 1
            if not place.line or placed[id] is Placed.CHANGED:
                self.report.registered.append((id, placed[id], place))
