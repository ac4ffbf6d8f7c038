"""Many registrations at once, from what owners have: good ones kept, bad ones named, safe to stop and to run again."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from mats.domain.capability import Id
from mats.domain.errors import Fault, Invalid, KindConflict, RegistrationInvalid
from mats.domain.placement import Placed
from mats.domain.profile import fingerprint
from mats.domain.registration import Registration
from mats.domain.rows import item_of
from mats.local.imports import formats, http
from mats.local.imports.files import MAX_LINE_BYTES, FileUnreadable, Found, content, found, opened, unpacked
from mats.local.imports.formats import Mapped, Source, registrations
from mats.local.imports.formats.decoding import Undecodable, decoded
from mats.ports import Registry

__all__ = ["BATCH", "FileUnreadable", "Importer", "Rejected", "Report", "Row", "opened", "parse", "rows", "trust_of"]

BATCH = 256
"""Rows per transaction: acknowledged together."""


class Row(NamedTuple):
    """One line of a file: its number, counted from 1, and its bytes; None if it is too long."""

    number: int
    line: bytes | None


class Place(NamedTuple):
    """Where something stands: in a line, or at a path into a document."""

    file: str
    line: int = 0
    where: str = ""

    def __str__(self) -> str:
        return (f"line {self.line}" if self.line else self.where or "the whole") + f" of {self.file}"


class Rejected(NamedTuple):
    """A row that was not taken, with everything that is wrong with it."""

    file: str
    line: int
    faults: Sequence[Fault]
    where: str = ""


class Noted(NamedTuple):
    """What there is to say about a row that was taken, or passed over."""

    file: str
    line: int
    where: str
    notes: Sequence[Fault]


@dataclass(slots=True)
class Report:
    """What became of the rows. Of documents, unlike of lines, every one that was placed is named."""

    rows: int = 0
    placed: Counter[Placed] = field(default_factory=Counter)
    rejected: list[Rejected] = field(default_factory=list)
    noted: list[Noted] = field(default_factory=list)
    passed_over: list[tuple[str, str]] = field(default_factory=list)
    """Files of a folder that hold nothing to import, and why that is thought."""
    named: list[tuple[Id, Placed, Place]] = field(default_factory=list)


def rows(file: IO[bytes]) -> Iterator[Row]:
    """The lines that are not blank; an overlong one is passed over without keeping it."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        complete: bytes | None = line
        while not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
            complete, line = None, file.readline(MAX_LINE_BYTES)
        if complete is None or complete.strip():
            yield Row(number, complete)


def value_of(row: Row) -> object:
    """The JSON value on a line.

    Raises:
        RegistrationInvalid: it is none.
    """
    if row.line is None:
        raise RegistrationInvalid([Fault("", f"is longer than {MAX_LINE_BYTES:,} bytes")])
    try:
        value: object = json.loads(row.line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RegistrationInvalid([Fault("", f"is not UTF-8 text (byte {error.start + 1})")]) from error
    except json.JSONDecodeError as error:
        hint = "; each line must hold one JSON object" if row.line.strip()[:1] in (b"[", b"]") else ""
        raise RegistrationInvalid(
            [Fault("", f"is not JSON: {error.msg} at character {error.pos + 1}{hint}")]
        ) from error
    except ValueError as error:
        raise RegistrationInvalid([Fault("", f"cannot be read: {error}")]) from error
    except RecursionError as error:
        raise RegistrationInvalid([Fault("", "is nested too deeply")]) from error
    return value


def parse(row: Row) -> Registration:
    """The registration on a line.

    Raises:
        RegistrationInvalid: with every fault.
    """
    return Registration.parse(item_of(value_of(row)))


def of_row(row: Row, source: Source) -> Iterator[Mapped]:
    """What a line holds: a registration, a row of a data set, or a document of another format."""
    try:
        value = value_of(row)
        format = formats.detected(value)
        if format is None or format.NAME == registrations.NAME:
            yield Mapped("", Registration.parse(item_of(registrations.owned(value, source.namespace))))
        else:
            yield from format.mapped(value, source)
    except RegistrationInvalid as error:
        yield Mapped("", faults=error.faults)


@dataclass(slots=True)
class Importer:
    """Takes files, folders and addresses one after the other into a registry; `namespace` wins over what they say."""

    registry: Registry
    namespace: str = ""
    report: Report = field(default_factory=Report)
    _seen: dict[Id, tuple[Place, str]] = field(default_factory=dict)
    """Place and fingerprint of what was first seen under each id."""

    def take_file(self, name: str, acknowledged: Callable[[int], None]) -> None:
        """Register what is good in a file, folder or address; what cannot be read (any further) counts as a bad row."""
        if http.is_address(name):
            self._take_address(name, acknowledged)
            return
        for one in found(name):
            try:
                if one.problem:
                    raise FileUnreadable([Fault(one.path, one.problem)])
                with opened(one.path) as file:
                    self._take_content(Source(one.path, self.namespace, folder=one.folder), one, file, acknowledged)
            except FileUnreadable as error:
                self.report.rejected.append(Rejected(one.path, 0, error.faults))

    def _take_address(self, url: str, acknowledged: Callable[[int], None]) -> None:
        name = http.shown(url).rstrip("/")
        try:
            answer = http.fetched(url)
            with unpacked(name, io.BytesIO(answer.body)) as file:
                self._take_content(Source(name, self.namespace, url=http.kept(url)), Found(name), file, acknowledged)
        except (http.Unfetchable, FileUnreadable) as error:
            self.report.rejected.append(Rejected(name, 0, error.faults))

    def _take_content(self, source: Source, one: Found, file: IO[bytes], acknowledged: Callable[[int], None]) -> None:
        held = content(one.path, file)
        if held.document is None:
            self.take(source.name, held.lines or file, acknowledged)
            return
        try:
            value = decoded(held.document, name=one.path)
        except Undecodable as error:
            if held.lines:
                self.take(source.name, held.lines, acknowledged)
            elif one.claimed:
                self.report.rejected.append(Rejected(source.name, 0, error.faults))
            else:
                self.report.passed_over.append((source.name, error.message))
            return
        format = formats.detected(value)
        if format is None and not one.claimed:
            self.report.passed_over.append((source.name, "is of no format that is known"))
        elif held.lines and isinstance(value, dict) and (format is None or format.NAME == registrations.NAME):
            self.take(source.name, held.lines, acknowledged)
        else:
            self.take_mapped(source.name, formats.mapped(value, source), acknowledged)

    def take(self, name: str, file: IO[bytes], acknowledged: Callable[[int], None]) -> None:
        """Register every good row of a file; `acknowledged` hears how many rows are safe, a batch at a time.

        Raises:
            StorageUnusable: the batch at hand is not written; everything acknowledged is.
        """
        source = Source(name, self.namespace)
        lines = (((Place(name, row.number)), list(of_row(row, source))) for row in rows(file))
        self._take(lines, acknowledged)

    def take_mapped(self, name: str, things: Iterable[Mapped], acknowledged: Callable[[int], None]) -> None:
        """Register what a document maps to, as `take` does the rows of a file."""
        self._take(((Place(name), [thing]) for thing in things), acknowledged, named=True)

    def _take(
        self, things: Iterable[tuple[Place, list[Mapped]]], acknowledged: Callable[[int], None], *, named: bool = False
    ) -> None:
        batch: list[tuple[Place, Registration]] = []
        unheard = 0
        for place, held in things:
            unheard += 1
            for mapped in held:
                self._sort(place._replace(where=mapped.where), mapped, batch)
            if unheard >= BATCH:
                self._put(batch, named=named)
                acknowledged(unheard)
                batch, unheard = [], 0
        self._put(batch, named=named)
        acknowledged(unheard)

    def _sort(self, place: Place, mapped: Mapped, batch: list[tuple[Place, Registration]]) -> None:
        """Put what can be registered into the batch, and what is to be said of it into the report."""
        self.report.rows += bool(mapped.registration or mapped.faults)
        if mapped.notes:
            self.report.noted.append(Noted(*place, mapped.notes))
        try:
            if mapped.faults:
                raise RegistrationInvalid(mapped.faults)
            if mapped.registration and self._is_first(place, mapped.registration):
                batch.append((place, mapped.registration))
        except RegistrationInvalid as error:
            self._reject(place, error)

    def _reject(self, place: Place, error: Invalid) -> None:
        self.report.rejected.append(Rejected(place.file, place.line, error.faults, place.where))

    def _is_first(self, place: Place, registration: Registration) -> bool:
        """Whether this is the first row under its id; a repetition to the letter is passed over.

        Raises:
            RegistrationInvalid: another row under the same id says something else.
        """
        digest = fingerprint(registration.item())
        first, before = self._seen.setdefault(registration.id, (place, digest))
        if first is place:
            return True
        if before == digest:
            self.report.placed[Placed.UNCHANGED] += 1
            return False
        raise RegistrationInvalid([Fault("name", f"{registration.id} stands in {first} already")])

    def _put(self, batch: Sequence[tuple[Place, Registration]], *, named: bool) -> None:
        placed = self.registry.put([registration for _, registration in batch]) if batch else {}
        for place, registration in batch:
            happened = placed[registration.id]
            if happened is Placed.OTHER_KIND:
                self._reject(place, KindConflict(registration.id))
            else:
                self.report.placed[happened] += 1
                if named:
                    self.report.named.append((registration.id, happened, place))


def trust_of(lines: Iterable[Row]) -> Iterator[tuple[Id, int]]:
    """Pairs of id and trust from rows such as `{"id": "com.acme/pay", "trust": 80}`."""
    for row in lines:
        entry = json.loads(row.line or b"")
        yield Id(entry["id"]), int(entry["trust"])
