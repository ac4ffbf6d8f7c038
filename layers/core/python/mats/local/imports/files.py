"""Opening what is to be imported: files, folders, standard input, addresses; and telling lines from documents."""

import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from mats.domain.errors import Fault, Invalid
from mats.local.imports.formats import skill
from mats.local.imports.formats.decoding import MAX_BYTES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_LINE_BYTES = 4_000_000
"""A row at the limit of an item, every character escaped, is shorter; what is longer is not read into memory."""
MAX_FILES = 20_000
"""In a folder and those below it."""

_CHUNK = 1 << 16
_LOOKED_AT = 200
"""Lines among which there is one that is JSON, if the lines are."""
_LINES = (".jsonl", ".ndjson")
_DOCUMENTS = (".json", ".yaml", ".yml")
_CLAIMED = ("server.json", "agent-card.json", "agent.json")
_PASSED_BY = frozenset(".git node_modules __pycache__ .venv".split())
_UNPACKED_AT_LEAST, _UNPACKED_TIMES = 100_000_000, 300
"""An archive that grows to more than both is none that somebody made of registrations."""


class FileUnreadable(Invalid):
    """A file cannot be opened or is not what its name says."""


def unreadable(name: str, why: str) -> FileUnreadable:
    """The error of a file by name."""
    return FileUnreadable([Fault(name, f"cannot be read: {why}")])


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """A file, unpacked if its name ends in .gz; `-` is standard input.

    Raises:
        FileUnreadable: it is not there, or damaged.
    """
    with _explained(name):
        if "\0" in name:
            raise unreadable(name, "no file has such a name")
        if name == "-":
            yield sys.stdin.buffer
        else:
            with Path(name).open("rb") as file, unpacked(name, file) as content:
                yield content


@contextmanager
def unpacked(name: str, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """What a file holds, which is packed if its name ends in .gz.

    Raises:
        FileUnreadable: it is damaged.
    """
    if not name.endswith(".gz"):
        yield file
        return
    with _explained(name), gzip.GzipFile(fileobj=file) as archive:
        yield io.BufferedReader(_Unpacked(name, file, archive), _CHUNK)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(name, (isinstance(error, OSError) and error.strerror) or str(error)) from error


class _Unpacked(io.RawIOBase):
    """What an archive holds, as long as it does not grow out of all proportion."""

    def __init__(self, name: str, packed: IO[bytes], archive: gzip.GzipFile) -> None:
        self._name, self._packed, self._archive, self._size = name, packed, archive, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        room = memoryview(buffer)
        read = self._archive.read1(len(room))
        room[: len(read)] = read
        self._size += len(read)
        if self._size > max(_UNPACKED_AT_LEAST, _UNPACKED_TIMES * self._packed.tell()):
            raise unreadable(self._name, f"it unpacks to more than {_UNPACKED_TIMES} times its size")
        return len(read)


class _Chained(io.RawIOBase):
    """What was read already, then the rest."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = memoryview(head), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        room = memoryview(buffer)
        if self._head:
            part, self._head = self._head[: len(room)], self._head[len(room) :]
        else:
            part = memoryview(_some(self._rest, len(room)))
        room[: len(part)] = part
        return len(part)


def _some(file: IO[bytes], most: int) -> bytes:
    """What is there, at least one byte unless the file has ended: whoever pipes lines in need not wait for more."""
    read = getattr(file, "read1", file.read)
    return cast(bytes, read(most))


class Content(NamedTuple):
    """What a file holds: lines to be read one by one, or a document that was read as a whole.

    A document that turns out to be none has lines after all if `lines` says that it may.
    """

    document: bytes | None
    lines: IO[bytes] | None


def content(name: str, file: IO[bytes]) -> Content:
    """What a file holds, by its name and by how it begins; of lines, little more than the first is read here."""
    plain = name.lower().removesuffix(".gz")
    if plain.endswith(_LINES):
        return Content(None, file)
    read, looked_at, ended = bytearray(), 0, False
    while len(read) <= MAX_BYTES and not ended:
        more = _some(file, _CHUNK)
        read += more
        ended = not more
        if ended or len(read) >= 2 * looked_at:
            looked_at = len(read)
            if _begins_with_lines(bytes(read), ended=ended):
                return Content(None, _stream(bytes(read), file))
    head = bytes(read)
    if not head.strip():
        return Content(None, _stream(head, file))
    lines = _stream(head, file) if _has_lines(head, ended=ended) else None
    return Content(head, lines)


def _stream(head: bytes, rest: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(_Chained(head, rest), _CHUNK)


def _begins_with_lines(head: bytes, *, ended: bool) -> bool:
    """Whether more than one line follows, the first JSON among them an object, and no list was begun before."""
    if head.lstrip()[:1] == b"[":
        return False
    alone = ended and b"\n" not in head.strip()
    return not alone and _has_lines(head, ended=ended)


def _has_lines(head: bytes, *, ended: bool) -> bool:
    """Whether one of the first lines is a whole object by itself, which in a document is indented or goes on."""
    lines = head.split(b"\n", _LOOKED_AT)
    for line in lines if ended else lines[:-1]:
        if line[:1] == b"{" and line.rstrip()[-1:] == b"}" and len(line) <= MAX_LINE_BYTES and _is_object(line):
            return True
    return False


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


class Found(NamedTuple):
    """A file of a folder. Of one whose name does not promise anything, nothing need be said if it is something else."""

    path: str
    folder: str = ""
    claimed: bool = True
    problem: str = ""


def found(name: str) -> Iterator[Found]:
    """The file itself; of a folder, the files in it that may hold something, in order of their names.

    A folder with a SKILL.md is one skill: what else lies there belongs to it. Links are followed to files inside the
    folder, and nowhere else.
    """
    root = Path(name)
    if not name:
        yield Found(name, problem="cannot be read: it has no name")
        return
    if name == "-" or not _is_folder(root):
        yield Found(name, folder=root.absolute().parent.name if root.name.lower() == skill.FILE.lower() else "")
        return
    count, home = 0, root.resolve()
    closed: list[OSError] = []
    for folder, folders, files in os.walk(root, onerror=closed.append, followlinks=False):
        skills = [file for file in files if file.lower() == skill.FILE.lower()]
        folders[:] = [] if skills else sorted(set(folders) - _PASSED_BY)
        for file in skills[:1] or sorted(files):
            if one := _candidate(Path(folder) / file, home):
                count += 1
                if count > MAX_FILES:
                    yield Found(name, problem=f"holds more than {MAX_FILES:,} files; give the folders in it one by one")
                    return
                yield one
    for error in closed:
        yield Found(str(error.filename or name), problem=f"cannot be read: {error.strerror or error}")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _candidate(path: Path, home: Path) -> Found | None:
    """A file of a folder, if its name says that it may hold something."""
    lower = path.name.lower()
    plain = lower.removesuffix(".gz")
    is_skill = lower == skill.FILE.lower()
    if not is_skill and not plain.endswith(_LINES + _DOCUMENTS):
        return None
    claimed = is_skill or plain.endswith(_LINES) or plain in _CLAIMED or plain.startswith("openapi")
    folder = path.absolute().parent.name if is_skill else ""
    if path.is_symlink() and not _leads_into(path, home):
        return Found(str(path), problem="is a link that leads out of the folder, or in a circle; it is not followed")
    return Found(str(path), folder, claimed) if path.is_file() else None


def _leads_into(link: Path, home: Path) -> bool:
    try:
        return link.resolve().is_relative_to(home)
    except (OSError, RuntimeError):  # how Python up to 3.12 says that links lead in a circle
        return False
