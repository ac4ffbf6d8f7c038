"""Find and open files, archives, folders, addresses and standard input; read them as lines or as documents."""

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from mats.domain.errors import Fault, Invalid
from mats.domain.protocols import skill
from mats.domain.protocols.addresses import Unfetchable
from mats.domain.protocols.protocol import MappedValue, rejection
from mats.domain.protocols.values import Json
from mats.local.imports import formats
from mats.local.imports.decoding import MAX_BYTES, Undecodable, decode

MAX_FILES = 20_000  # Maximum of a folder and those below it

_CHUNK = 1 << 16
LINE_ENDINGS = (".jsonl", ".ndjson")  # Extensions of files with one value per line
DOCUMENTS = (".json", ".jsonc", ".yaml", ".yml", ".toml")
_CLAIMED = ("server.json", "server-card.json", "agent-card.json", "agent.json")
_SKIPPED_FOLDERS = frozenset(".git node_modules __pycache__ .venv".split())
_MIN_UNPACKED, _MAX_RATIO = 100_000_000, 300
"""Limits against decompression bombs, in bytes and times the packed size; rejected if both are exceeded."""
_MAX_SKILL_FILES = 200  # Names of files that a skill lists; more are not listed
MAX_LINE_BYTES = 4_000_000  # Above the largest item with every character escaped; longer lines are not read into memory
_TOO_LONG = rejection("", f"is longer than {MAX_LINE_BYTES:,} bytes: shorten it")

_MOST_BLANK = 1_000_000
"""Blank lines beyond one for each other line: an archive holds hundreds of millions in a few hundred kilobytes."""


def is_address(name: str) -> bool:
    """True if a name is that of no file, but an address to be fetched."""
    return name.lower().startswith(("http://", "https://"))


class Location(NamedTuple):
    """A line of a file (counted from 1), or a path into a document."""

    file: str
    line: int = 0
    where: str = ""

    def __str__(self) -> str:
        return (f"line {self.line}" if self.line else self.where or "the whole") + f" of {self.file}"


class Skipped(NamedTuple):
    """A file of a folder that is of no known format."""

    reason: str


Value: TypeAlias = Json | MappedValue | Invalid | Skipped
"""A JSON value, or instead of one: faults or notes, why a file is unreadable, a skipped file."""
Stream: TypeAlias = Iterator[tuple[Location, Value]]


class FileUnreadable(Invalid):
    """A file cannot be opened, or is damaged."""


def _unreadable(name: str, reason: str) -> FileUnreadable:
    return FileUnreadable([Fault(name, f"cannot be read: {reason}")])


@contextmanager
def open_file(name: str, home: str = "") -> Iterator[IO[bytes]]:
    """Open a file, decompressed if its name ends in .gz; `-` is standard input.

    If it was found in the folder `home`, a path without links, what has been put in its place since, such as a link out
    of the folder or a pipe, is not read. Raises FileUnreadable: it does not exist, or is damaged.
    """
    with _translate_errors(name):
        if "\0" in name:
            raise _unreadable(name, "a name cannot contain a NUL")
        if name == "-":
            yield sys.stdin.buffer
        else:
            opener = partial(_open_found, home=home) if home else None
            with open(name, "rb", opener=opener) as file, decompress(name, file) as content:
                yield content


def _open_found(name: str, flags: int, home: str) -> int:
    """A descriptor of a regular file below `home`, also if something else takes its place meanwhile."""
    descriptor = os.open(name, flags | os.O_NONBLOCK)  # does not wait for the writer of a pipe
    try:
        opened, found = os.fstat(descriptor), Path(name).resolve()
        is_below = found.is_relative_to(home) and os.path.samestat(opened, os.lstat(found))
        if not (is_below and stat.S_ISREG(opened.st_mode)):
            raise _unreadable(name, "something else has taken its place")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def decompress(name: str, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The content of a file, decompressed if its name ends in .gz."""
    if not name.endswith(".gz"):
        yield file
        return
    with _translate_errors(name), gzip.GzipFile(fileobj=file) as archive:
        size = 0

        def read_part(limit: int) -> bytes:
            nonlocal size
            part = archive.read1(limit)
            size += len(part)
            if size > max(_MIN_UNPACKED, _MAX_RATIO * file.tell()):
                raise _unreadable(name, f"it decompresses to more than {_MAX_RATIO} times its size")
            return part

        yield io.BufferedReader(_Reader(read_part), _CHUNK)


@contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(name, _reason(error)) from error


def _reason(error: Exception) -> str:
    """The reason that a file or an archive cannot be read, and what to do."""
    said = error.strerror if isinstance(error, OSError) else None
    return f"{said}; check its path and rights" if said else f"{error}; pack it again"


class _Reader(io.RawIOBase):
    """A stream of what a function reads, given the most bytes that it may return."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer)
        part = self._read(len(room))
        room[: len(part)] = part
        return len(part)


class File(NamedTuple):
    """A file to import. One that is not `claimed` is skipped if it is of no known format."""

    path: str
    folder: str = ""  # For a SKILL.md: the name of its folder, which should be the name of the skill
    claimed: bool = True
    problem: str = ""  # Why it cannot be read
    home: str = ""  # The folder in which it was found, at any depth, without links; empty for a file that was named
    files: tuple[str, ...] = ()  # For a SKILL.md in a folder: the files of its folder, as paths below it


def find_files(name: str) -> Iterator[File]:
    """The file itself, or the files of a folder that may be of a known format, sorted by name.

    A folder with a SKILL.md is one skill: the files there and below belong to it, apart from other skills. Links are
    followed only to files inside the folder.
    """
    root = Path(name)
    if not name:
        yield File(name, problem="cannot be read: the name is empty")
        return
    if name == "-" or not os.path.isdir(name):  # noqa: PTH112 - false for a name that is not valid
        yield File(name, folder=root.absolute().parent.name if root.name.lower() == skill.FILE.lower() else "")
        return
    count, home = 0, root.resolve()
    errors: list[OSError] = []
    of_skills: set[str] = set()
    for folder, folders, files in os.walk(root, onerror=errors.append, followlinks=False):
        skills = [file for file in files if file.lower() == skill.FILE.lower()]
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        if skills or folder in of_skills:
            of_skills.update(os.path.join(folder, inner) for inner in folders)  # noqa: PTH118 - as os.walk joins them
        for file in skills[:1] or sorted(() if folder in of_skills else files):
            if candidate := _candidate(Path(folder) / file, home):
                count += 1
                if count > MAX_FILES:
                    yield File(name, problem=f"holds more than {MAX_FILES:,} files: import its folders one by one")
                    return
                yield candidate._replace(files=_files_below(Path(folder))) if skills else candidate
    for error in errors:
        yield File(str(error.filename or name), problem=f"cannot be read: {_reason(error)}")


def _candidate(path: Path, home: Path) -> File | None:
    """A file of a folder whose name is that of a known format."""
    lower = path.name.lower()
    plain = lower.removesuffix(".gz")
    is_skill = lower == skill.FILE.lower()
    if not is_skill and not plain.endswith(LINE_ENDINGS + DOCUMENTS):
        return None
    claimed = is_skill or plain.endswith(LINE_ENDINGS) or plain in _CLAIMED or plain.startswith("openapi")
    folder = path.absolute().parent.name if is_skill else ""
    if path.is_symlink() and not leads_into(path, home):
        return File(str(path), problem="is a link out of the folder or in a circle; it is not followed")
    return File(str(path), folder, claimed, home=str(home)) if path.is_file() else None


def _files_below(folder: Path) -> tuple[str, ...]:
    """The files of a skill's folder, sorted: without links, hidden files, and folders of tools."""
    found: list[str] = []
    for inner, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in set(folders) - _SKIPPED_FOLDERS if not name.startswith("."))
        paths = (Path(inner) / name for name in sorted(files) if not name.startswith("."))
        found += [path.relative_to(folder).as_posix() for path in paths if not path.is_symlink()]
        if len(found) >= _MAX_SKILL_FILES:
            break
    return tuple(sorted(name for name in found if name.isprintable())[:_MAX_SKILL_FILES])


def leads_into(link: Path, home: Path) -> bool:
    """True if a path leads into a folder, which has no links in its own path."""
    try:
        return link.resolve().is_relative_to(home)
    except (OSError, RuntimeError):  # RuntimeError: Python up to 3.12, where links lead in a circle
        return False


_NAMED = (".json", ".jsonc", ".md", ".yaml", ".yml", ".toml")
"""Extensions of files that are documents, whatever their lines look like; JSON may be several objects, one a line."""
_BLANK = b"\xef\xbb\xbf \t\r\n"  # What may stand before a document: a byte order mark, white space


def read_content(name: str, file: IO[bytes]) -> tuple[bytes, IO[bytes] | None]:
    """The document in a file, and its lines if it may hold some; by name, else by its first line.

    The document is empty if the file certainly holds lines, to be read one by one. A .json file may be one of lines.
    """
    plain = name.lower().removesuffix(".gz")
    if plain.endswith(LINE_ENDINGS):
        return b"", file
    if plain.endswith(_NAMED):
        head = file.read(MAX_BYTES + 1) or b"\n"
        first, more, _ = head.strip(_BLANK).partition(b"\n")
        return head, _chain(head, file) if plain.endswith(".json") and more and _is_object(first) else None
    read, line = bytearray(), b""
    while not line.strip(_BLANK) and len(read) <= _MOST_BLANK and (line := file.readline(MAX_LINE_BYTES)):
        read += line
    if _is_object(line := line.strip(_BLANK)) or not line:
        return b"", _chain(bytes(read), file)
    return bytes(read) + file.read(MAX_BYTES), None


def _is_object(line: bytes) -> bool:
    """True if a line looks like a whole JSON object: in a document, objects are indented or span lines."""
    return line[:1] == b"{" and line.rstrip()[-1:] == b"}"


def _chain(head: bytes, rest: IO[bytes]) -> IO[bytes]:
    """Bytes that were read already, then the rest of their file, which can be a pipe: what it has is not waited for."""
    left, read_available = io.BytesIO(head), getattr(rest, "read1", rest.read)
    return io.BufferedReader(_Reader(lambda limit: left.read(limit) or read_available(limit)), _CHUNK)


def read_lines(name: str, stream: IO[bytes]) -> Iterator[tuple[Location, Json | MappedValue]]:
    """The value of each line that is not blank, or its fault. An overlong line is not held in memory."""
    number = blank = 0
    while line := stream.readline(MAX_LINE_BYTES):
        number += 1
        blank += -1 if line.strip() else 1
        if blank > _MOST_BLANK:
            message = f"has over {_MOST_BLANK:,} more blank lines than others; the rest is not read"
            yield Location(name, number), rejection("", message)
            return
        overlong = False
        while not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
            overlong, line = True, stream.readline(MAX_LINE_BYTES)
        if overlong or line.strip():
            try:
                yield Location(name, number), _TOO_LONG if overlong else decode(line, name=".json")
            except Undecodable as error:
                yield Location(name, number), rejection("", error.message)


def read_beside(file: File, left: list[int], name: str) -> Json:
    """The value of another document, by its path from a file, in the folder that is imported or else that of the file.

    `left` is how many bytes may still be read for this file. Raises Invalid: it lies elsewhere, or cannot be read.
    """
    path, home = Path(file.path).parent / name, file.home or str(Path(file.path).parent.resolve())
    is_hidden = any(part.startswith(".") and part.strip(".") for part in Path(name).parts)
    if is_hidden or not leads_into(path, Path(home)) or not path.name.lower().endswith(DOCUMENTS):
        raise FileUnreadable([Fault(name, "is no JSON or YAML file in the folder of the document")])
    with open_file(str(path), home) as stream:
        content = stream.read(left[0] + 1)
    left[0] -= len(content)
    if left[0] < 0:
        raise FileUnreadable([Fault(name, f"is left out: files of over {MAX_BYTES:,} bytes belong to the document")])
    return decode(content, name=name)


def read_file(file: File) -> Stream:
    try:
        if file.problem:
            raise FileUnreadable([Fault(file.path, file.problem)])
        with open_file(file.path, file.home) as stream:
            yield from read_values(file, stream)
    except FileUnreadable as error:
        yield Location(file.path), error


def read_address(url: str, name: str, timeout_s: float) -> Stream:
    from mats.client.bounded_http import fetch  # noqa: PLC0415 - loads the HTTP library only for addresses

    try:
        with decompress(name, io.BytesIO(fetch(url, timeout_s=timeout_s))) as stream:
            yield from read_values(File(name), stream)
    except (Unfetchable, FileUnreadable) as error:
        yield Location(name), error


def read_values(file: File, stream: IO[bytes]) -> Stream:
    """The value of each line, or the one value of a document.

    Lines are read one by one, so those before a pause are registered before those after it.
    """
    document, lines = read_content(file.path, stream)
    if not document:
        yield from read_lines(file.path, lines or stream)
        return
    try:
        value = decode(document, name=file.path)
    except Undecodable as error:
        if lines:
            yield from read_lines(file.path, lines)
        else:
            yield Location(file.path), error if file.claimed else Skipped(error.message)
        return
    format = formats.detect_format(value)
    if format is None and not file.claimed:
        yield Location(file.path), Skipped("is of no known format")
    else:
        yield Location(file.path), value
