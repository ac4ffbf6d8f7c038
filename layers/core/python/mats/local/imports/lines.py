"""Distinguish files of lines from documents, and read lines one by one."""

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, NamedTuple, cast

from mats.domain.errors import Fault, RegistrationInvalid
from mats.local.imports.files import LINE_ENDINGS
from mats.local.imports.formats import Json, MappedValue
from mats.local.imports.formats.decoding import MAX_BYTES

MAX_LINE_BYTES = 4_000_000
"""Above the largest item with every character escaped; longer lines are not read into memory."""

_CHUNK = 1 << 16
_MOST_BLANK = 1_000_000
"""Blank lines beyond one for each other line: an archive holds hundreds of millions in a few hundred kilobytes."""
_PROBED_LINES = 200
"""A file is one of lines if a whole JSON object is among this many."""


class Location(NamedTuple):
    """A line of a file (counted from 1), or a path into a document."""

    file: str
    line: int = 0
    where: str = ""

    def __str__(self) -> str:
        return (f"line {self.line}" if self.line else self.where or "the whole") + f" of {self.file}"


class Content(NamedTuple):
    """The content of a file: lines to be read one by one, or a document that was read as a whole.

    A document that cannot be decoded is read as lines if `lines` is not None.
    """

    document: bytes | None
    lines: IO[bytes] | None


def read_content(name: str, file: IO[bytes]) -> Content:
    """Decide by name and first lines whether a file holds lines or a document; read the document."""
    if name.lower().removesuffix(".gz").endswith(LINE_ENDINGS):
        return Content(None, file)
    read, probed, ended, is_lines = bytearray(), 0, False, False
    while len(read) <= MAX_BYTES and not ended and not is_lines:
        more = _read_available(file, _CHUNK)
        read += more
        ended = not more
        if ended or len(read) >= 2 * probed:
            probed = len(read)
            is_lines = _begins_with_lines(bytes(read), ended=ended)
    head = bytes(read)
    lines = io.BufferedReader(_Chained(head, file), _CHUNK)
    if is_lines or not head.strip():
        return Content(None, lines)
    return Content(head, lines if _has_lines(head, ended=ended) else None)


def _begins_with_lines(head: bytes, *, ended: bool) -> bool:
    """Whether there are several lines, one of the first is a JSON object, and no list was begun."""
    if head.lstrip()[:1] == b"[":
        return False
    single = ended and b"\n" not in head.strip()
    return not single and _has_lines(head, ended=ended)


def _has_lines(head: bytes, *, ended: bool) -> bool:
    """Whether one of the first lines is a whole JSON object: in a document, objects are indented or span lines."""
    lines = head.split(b"\n", _PROBED_LINES)
    for line in lines if ended else lines[:-1]:
        if line[:1] == b"{" and line.rstrip()[-1:] == b"}" and len(line) <= MAX_LINE_BYTES:
            with suppress(ValueError, RecursionError):
                json.loads(line)
                return True
    return False


class _Chained(io.RawIOBase):
    """Bytes that were read already, then the rest of their file."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer)
        if self._head:
            part, self._head = self._head[: len(room)], self._head[len(room) :]
        else:
            part = memoryview(_read_available(self._rest, len(room)))
        room[: len(part)] = part
        return len(part)


def _read_available(file: IO[bytes], limit: int) -> bytes:
    """At least one byte unless the file has ended, without waiting for all `limit`: input can be a pipe."""
    read = getattr(file, "read1", file.read)
    return cast(bytes, read(limit))


def read_lines(name: str, stream: IO[bytes]) -> Iterator[tuple[Location, Json | MappedValue]]:
    """The value of each line that is not blank, or its fault. An overlong line is not held in memory."""
    number = blank = 0
    while line := stream.readline(MAX_LINE_BYTES):
        number += 1
        blank += -1 if line.strip() else 1
        if blank > _MOST_BLANK:
            fault = Fault("", f"has over {_MOST_BLANK:,} more blank lines than others; the rest is not read")
            yield Location(name, number), MappedValue("", faults=(fault,))
            return
        overlong = False
        while not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
            overlong, line = True, stream.readline(MAX_LINE_BYTES)
        if overlong or line.strip():
            yield Location(name, number), MappedValue("", faults=(_overlong(),)) if overlong else _value_or_fault(line)


def _overlong() -> Fault:
    return Fault("", f"is longer than {MAX_LINE_BYTES:,} bytes")


def _value_or_fault(line: bytes) -> Json | MappedValue:
    try:
        return parse_line(line)
    except RegistrationInvalid as error:
        return MappedValue("", faults=error.faults)


def parse_line(line: bytes) -> Json:
    try:
        if len(line) > MAX_LINE_BYTES:
            raise RegistrationInvalid([_overlong()])
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RegistrationInvalid([Fault("", f"is not UTF-8 text (byte {error.start + 1})")]) from error
    except json.JSONDecodeError as error:
        hint = "; each line must hold one JSON object" if line.strip()[:1] in (b"[", b"]") else ""
        message = f"is not JSON: {error.msg} at character {error.pos + 1}{hint}"
        raise RegistrationInvalid([Fault("", message)]) from error
    except ValueError as error:
        raise RegistrationInvalid([Fault("", f"cannot be read: {error}")]) from error
    except RecursionError as error:
        raise RegistrationInvalid([Fault("", "is nested too deeply")]) from error
