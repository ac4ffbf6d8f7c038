"""Register values from any source in batches; reject invalid ones with every fault. Can be interrupted and repeated."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mats.domain.capability import Id
from mats.domain.errors import Fault, Invalid, KindConflict, RegistrationInvalid
from mats.domain.origin import fingerprint
from mats.domain.placement import Placed
from mats.domain.registration import Registration
from mats.local.imports import formats
from mats.local.imports.files import FileUnreadable
from mats.local.imports.formats import MappedValue, Source
from mats.local.imports.report import Location, Rejection, Remark, Report
from mats.local.imports.sources import Skipped, Stream, Value
from mats.ports import Registry

BATCH = 256
"""Registrations per transaction, acknowledged together."""


@dataclass(slots=True)
class Importer:
    """Registers the values of sources, one source after the other."""

    registry: Registry
    report: Report = field(default_factory=Report)
    _first: dict[Id, tuple[Location, str]] = field(default_factory=dict)
    """Location and fingerprint of the first registration under each id."""

    def import_sources(
        self, sources: Iterable[tuple[Source, Stream]], acknowledge: Callable[[int], None] = lambda count: None
    ) -> None:
        """Register the values of sources; `acknowledge` is called with the size of each batch once it is written.

        Raises:
            StorageUnusable: the current batch is not written; everything acknowledged is.
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
            if isinstance(value, FileUnreadable):
                self._reject(place, value)
                continue
            for mapped in _map(value, source, is_line=place.line > 0):
                self._sort(place._replace(where=mapped.where), mapped, batch)
                pending += 1
                if pending >= BATCH:
                    self._put(batch)
                    acknowledge(pending)
                    batch, pending = [], 0
        self._put(batch)
        acknowledge(pending)

    def _sort(self, place: Location, mapped: MappedValue, batch: list[tuple[Location, Registration]]) -> None:
        """Add a registration to the batch, faults and notes to the report."""
        self.report.rows += bool(mapped.registration or mapped.faults)
        if mapped.notes:
            self.report.noted.append(Remark(place, mapped.notes))
        try:
            if mapped.faults:
                raise RegistrationInvalid(mapped.faults)
            if mapped.registration and self._is_first(place, mapped.registration):
                batch.append((place, mapped.registration))
        except RegistrationInvalid as error:
            self._reject(place, error)

    def _reject(self, place: Location, error: Invalid) -> None:
        self.report.rejected.append(Rejection(place, error.faults))

    def _is_first(self, place: Location, registration: Registration) -> bool:
        """Whether this is the first registration under its id; an equal one later counts as unchanged.

        Raises:
            RegistrationInvalid: another registration of this import has the same id.
        """
        digest = fingerprint(registration.item())
        first, before = self._first.setdefault(registration.id, (place, digest))
        if first is place:
            return True
        if before == digest:
            self.report.placed[Placed.UNCHANGED] += 1
            return False
        raise RegistrationInvalid([Fault("name", f"{registration.id} is in {first} already")])

    def _put(self, batch: Sequence[tuple[Location, Registration]]) -> None:
        placed = self.registry.put([registration for _, registration in batch]) if batch else {}
        for place, registration in batch:
            outcome = placed[registration.id]
            if outcome is Placed.OTHER_KIND:
                self._reject(place, KindConflict(registration.id))
            else:
                self.report.placed[outcome] += 1
                if not place.line:
                    self.report.registered.append((registration.id, outcome, place))


def _map(value: Value, source: Source, *, is_line: bool) -> Iterator[MappedValue]:
    if isinstance(value, MappedValue):
        yield value
    else:
        yield from formats.map_value(value, source, is_line=is_line)
