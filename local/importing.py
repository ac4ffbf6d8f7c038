"""Many registrations at once, from JSON Lines: good rows kept, bad ones named, safe to stop and to run again."""

import gzip
import json
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, cast

from mats.domain.capability import Id
from mats.domain.errors import Fault, Invalid, RegistrationInvalid
from mats.domain.profile import fingerprint
from mats.domain.registration import Registration
from mats.domain.rows import item_of
from mats.ports import Placed, Registry

BATCH = 256
"""Rows per transaction: acknowledged together."""
MAX_LINE_BYTES = 4_000_000
"""A row at the limit of an item, every character escaped, is shorter; what is longer is not read into memory."""


class Row(NamedTuple):
    """One line of a file: its number, counted from 1, and its bytes; None if it is too long."""

    number: int
    line: bytes | None


class Rejected(NamedTuple):
    """A row that was not taken, with everything that is wrong with it."""

    file: str
    line: int
    faults: Sequence[Fault]


@dataclass(slots=True)
class Report:
    """What became of the rows."""

    rows: int = 0
    placed: Counter[Placed] = field(default_factory=Counter)
    rejected: list[Rejected] = field(default_factory=list)


class FileUnreadable(Invalid):
    """A file cannot be opened or is not what its name says."""


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """A file, unpacked if its name ends in .gz; `-` is standard input.

    Raises:
        FileUnreadable: it is not there, or damaged.
    """
    try:
        if name == "-":
            yield sys.stdin.buffer
        elif name.endswith(".gz"):
            with gzip.open(name) as packed:
                yield cast(IO[bytes], packed)
        else:
            with Path(name).open("rb") as file:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileUnreadable([Fault(name, f"cannot be read: {reason}")]) from error


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


def parse(row: Row) -> Registration:
    """The registration on a line.

    Raises:
        RegistrationInvalid: with every fault.
    """
    if row.line is None:
        raise RegistrationInvalid([Fault("", f"is longer than {MAX_LINE_BYTES:,} bytes")])
    try:
        value = json.loads(row.line.decode("utf-8-sig"))
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
    return Registration.parse(item_of(value))


@dataclass(slots=True)
class Importer:
    """Takes files one after the other into a registry."""

    registry: Registry
    report: Report = field(default_factory=Report)
    _seen: dict[Id, tuple[str, int, str]] = field(default_factory=dict)
    """File, line and fingerprint of the row first seen under each id."""

    def take_file(self, name: str, acknowledged: Callable[[int], None]) -> None:
        """Register every good row of a file by name; one that cannot be read (any further) is reported like a row."""
        try:
            with opened(name) as file:
                self.take(name, file, acknowledged)
        except FileUnreadable as error:
            self.report.rejected.append(Rejected(name, 0, error.faults))

    def take(self, name: str, file: IO[bytes], acknowledged: Callable[[int], None]) -> None:
        """Register every good row of a file; `acknowledged` hears how many rows are safe, a batch at a time.

        Raises:
            StorageUnusable: the batch at hand is not written; everything acknowledged is.
        """
        batch: list[tuple[int, Registration]] = []
        unheard = 0
        for row in rows(file):
            self.report.rows += 1
            unheard += 1
            try:
                registration = parse(row)
                if self._is_first(name, row.number, registration):
                    batch.append((row.number, registration))
            except RegistrationInvalid as error:
                self.report.rejected.append(Rejected(name, row.number, error.faults))
            if unheard >= BATCH:
                self._put(name, batch)
                acknowledged(unheard)
                batch, unheard = [], 0
        self._put(name, batch)
        acknowledged(unheard)

    def _is_first(self, name: str, number: int, registration: Registration) -> bool:
        """Whether this is the first row under its id; a repetition to the letter is passed over.

        Raises:
            RegistrationInvalid: another row under the same id says something else.
        """
        digest = fingerprint(registration.item())
        file, line, before = self._seen.setdefault(registration.id, (name, number, digest))
        if (file, line) == (name, number):
            return True
        if before == digest:
            self.report.placed[Placed.UNCHANGED] += 1
            return False
        raise RegistrationInvalid([Fault("name", f"{registration.id} stands in line {line} of {file} already")])

    def _put(self, name: str, batch: Sequence[tuple[int, Registration]]) -> None:
        placed = self.registry.put([registration for _, registration in batch]) if batch else {}
        for number, registration in batch:
            happened = placed[registration.id]
            if happened is Placed.OTHER_KIND:
                message = f"cannot become {registration.kind}: {registration.id} is of another kind; remove it first"
                self.report.rejected.append(Rejected(name, number, [Fault("kind", message)]))
            else:
                self.report.placed[happened] += 1


def trust_of(lines: Iterable[Row]) -> Iterator[tuple[Id, int]]:
    """Pairs of id and trust from rows such as `{"id": "com.acme/pay", "trust": 80}`."""
    for row in lines:
        entry = json.loads(row.line or b"")
        yield Id(entry["id"]), int(entry["trust"])
