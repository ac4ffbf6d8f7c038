"""One stream of values from every source: lines, documents, archives, folders, addresses and live servers."""

import io
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple, TypeAlias

from mats.domain.errors import Fault, Invalid
from mats.domain.protocols.mcp_server import McpServer, McpStdio, remote_server, server_entry, stdio_server
from mats.local.imports import addresses, formats
from mats.local.imports.files import File, FileUnreadable, decompress, find_files, open_file
from mats.local.imports.formats import Json, MappedValue, Source, registrations
from mats.local.imports.formats.decoding import Undecodable, decode
from mats.local.imports.lines import Location, read_content, read_lines


class Skipped(NamedTuple):
    """A file of a folder that is of no known format."""

    reason: str


Value: TypeAlias = Json | MappedValue | Invalid | Skipped
"""A JSON value, or instead of one: faults or notes, why a file is unreadable, a skipped file."""
Stream: TypeAlias = Iterator[tuple[Location, Value]]


def open_sources(name: str, namespace: str = "", timeout_s: float = 30) -> Iterator[tuple[Source, Stream]]:
    """Each file behind a name (a file, a folder, an address, or `-` for standard input) with its values.

    A stream is lazy: consume it before the next one. The timeout is that of an address.
    """
    if addresses.is_address(name):
        shown = addresses.redact(name).rstrip("/")
        yield Source(shown, namespace, url=addresses.without_query(name)), _read_address(name, shown, timeout_s)
        return
    for file in find_files(name):
        yield Source(file.path, namespace, folder=file.folder, files=file.files), _read_file(file)


def live_source(
    name: str, ask: Callable[[], Json], namespace: str, url: str = "", command: Sequence[str] = ()
) -> tuple[Source, Stream]:
    """The list of a live service; `url` is its address or `command` starts it, if it is an MCP server."""
    server = stdio_server(command[0], command[1:]) if command else remote_server(url)
    entry = server_entry(server) if server else None
    source = Source(name, namespace, server=addresses.without_query(url), server_entry=entry)
    return source, _ask(source, ask, tuple(_remarks(source, url, command, server)))


def _remarks(source: Source, url: str, command: Sequence[str], server: McpServer | None) -> Iterator[Fault]:
    """Remarks on the parts of an address or a command that are not registered."""
    if source.server != url:
        yield Fault("endpoint", "is registered without the query and fragment of the address, which may be a secret")
    if command and server is None:
        yield Fault(
            "server", "the command is not registered: it has hidden or control characters, or too many arguments"
        )
    if isinstance(server, McpStdio) and server.inputs:
        names = ", ".join(f"{{{name}}}" for name in server.inputs)
        yield Fault("server", f"arguments that may be secret are not registered; callers fill in {names}")


def _ask(source: Source, ask: Callable[[], Json], remarks: Sequence[Fault]) -> Stream:
    if remarks:
        yield Location(source.name), MappedValue("", notes=tuple(remarks))
    yield Location(source.name), ask()


def _read_file(file: File) -> Stream:
    try:
        if file.problem:
            raise FileUnreadable([Fault(file.path, file.problem)])
        with open_file(file.path, file.home) as stream:
            yield from read_values(file, stream)
    except FileUnreadable as error:
        yield Location(file.path), error


def _read_address(url: str, name: str, timeout_s: float) -> Stream:
    from mats.local.imports import http  # noqa: PLC0415 - loads the HTTP library only for addresses

    try:
        with decompress(name, io.BytesIO(http.fetch(url, timeout_s=timeout_s))) as stream:
            yield from read_values(File(name), stream)
    except (addresses.Unfetchable, FileUnreadable) as error:
        yield Location(name), error


def read_values(file: File, stream: IO[bytes]) -> Stream:
    """The value of each line, or the one value of a document.

    Lines are read one by one, so those before a pause are registered before those after it.
    """
    content = read_content(file.path, stream)
    if content.document is None:
        yield from read_lines(file.path, content.lines or stream)
        return
    try:
        value = decode(content.document, name=file.path)
    except Undecodable as error:
        if content.lines:
            yield from read_lines(file.path, content.lines)
        else:
            yield Location(file.path), error if file.claimed else Skipped(error.message)
        return
    format = formats.detect_format(value)
    if format is None and not file.claimed:
        yield Location(file.path), Skipped("is of no known format")
    elif content.lines and isinstance(value, dict) and format in (None, registrations):
        yield from read_lines(file.path, content.lines)
    else:
        yield Location(file.path), value
