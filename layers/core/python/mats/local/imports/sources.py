"""Open any source that an argument of `mats import` or `mats source add` names, as one stream of values.

Sources are lines, documents, archives, folders, addresses and live servers.
"""

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mats.bootstrap.models import bedrock_catalogue
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.domain.protocols.addresses import redact, split_url, without_query
from mats.domain.protocols.mcp_server import McpServer, McpStdio, remote_server, server_entry, stdio_server
from mats.domain.protocols.protocol import MappedValue, Source
from mats.domain.protocols.values import Json
from mats.domain.text.redaction import redact_arguments
from mats.local.imports.decoding import MAX_BYTES
from mats.local.imports.files import Location, Stream, find_files, is_address, read_address, read_beside, read_file
from mats.ports import SourceState
from mats.settings import Settings

LIVE = "`mcp -- COMMAND...`, `mcp URL`, `mcp-registry URL`, `mcp-card URL`, `a2a URL`, `ard URL`, `bedrock`"
"""Sources that are not named by a path or an address alone, for help."""
_BY_ADDRESS = (SourceKind.MCP_REGISTRY, SourceKind.MCP_CARD, SourceKind.ARD, SourceKind.A2A)


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of a source, to be consumed in order."""

    sources: Iterable[tuple[Source, Stream]]
    is_whole: bool = True  # True if it lists everything, not only what changed since a time
    cursor: Callable[[str], str] = lambda now: ""
    """After all values: the `since` of the next reading, given the time now."""


def parse_location(what: Sequence[str]) -> tuple[SourceKind, tuple[str, ...]]:
    """The kind of a source and its location from arguments: `mcp -- COMMAND`, `mcp-registry URL`, a file or an address.

    Raises RequestInvalid: an address is missing or not valid, or there is more than one source.
    """
    match what:
        case ["bedrock"]:
            return SourceKind.BEDROCK, ()
        case ["mcp"]:
            raise RequestInvalid([Fault("mcp", "needs a server: give `mcp -- COMMAND...` or `mcp URL`")])
        case ["mcp", *server]:
            if len(server) == 1 and is_address(server[0]):
                split_url(server[0])
            return SourceKind.MCP, tuple(_absolute(word, is_command=not place) for place, word in enumerate(server))
        case [kind, *rest] if kind in _BY_ADDRESS:
            if len(rest) != 1 or not is_address(rest[0]):
                raise RequestInvalid([Fault(kind, f"needs an address: give `{kind} URL`")])
            split_url(rest[0])
            return SourceKind(kind), (rest[0],)
        case [name]:
            if is_address(name):
                split_url(name)
            return SourceKind.DOCUMENT, (name,)
    raise RequestInvalid([Fault("", "must be one source: a file, a folder, an address, or `mcp -- COMMAND...`")])


def _absolute(word: str, *, is_command: bool) -> str:
    """A word of a command line; the relative path of a file is made absolute, because callers are in other folders."""
    is_relative = word.startswith(("./", "../")) or (is_command and "/" in word and not word.startswith("/"))
    return os.path.abspath(word) if is_relative and os.path.lexists(word) else word  # noqa: PTH100 - without `..`


def open_reading(source: TrackedSource, settings: Settings, since: str = "") -> Reading:
    """Open a source; nothing is read before its values are. `since` is the cursor of an earlier reading."""
    namespace, timeout_s, (first, *_) = source.namespace, source.timeout_s, (*source.location, "")
    match source.kind:
        case SourceKind.BEDROCK:
            return Reading([live_source("bedrock", lambda: bedrock_catalogue(settings), namespace)])
        case SourceKind.MCP:
            return Reading([_live_server(source.location, timeout_s, namespace)])
        case SourceKind.DOCUMENT if source.live:
            from mats.local.imports.mcp_servers import open_servers  # noqa: PLC0415 - loads the MCP SDK

            return Reading(open_servers(first, namespace, timeout_s))
        case SourceKind.DOCUMENT:
            return Reading(open_sources(first, namespace, timeout_s))
    from mats.client.bounded_http import fetch as fetch_address  # noqa: PLC0415 - loads the HTTP library
    from mats.local.imports import registries  # noqa: PLC0415 - as above

    fetch = partial(fetch_address, timeout_s=timeout_s)
    if source.kind is SourceKind.MCP_REGISTRY:
        registry = registries.McpRegistry(first, fetch, since=since)
        return Reading([(Source(redact(first), namespace), registry.pages())], not since, registry.cursor)
    cards = {SourceKind.A2A: registries.AGENT_CARDS, SourceKind.MCP_CARD: registries.SERVER_CARDS}.get(source.kind)
    values = registries.card(cards, first, fetch) if cards else registries.catalog(first, fetch)
    return Reading([(Source(redact(first), namespace, url=without_query(first)), values)])


def open_sources(
    name: str, namespace: str = "", timeout_s: float = 30, base: str = ""
) -> Iterator[tuple[Source, Stream]]:
    """Each file behind a name (a file, a folder, an address, or `-` for standard input) with its values.

    A stream is lazy: consume it before the next one. The timeout is that of an address; `base` is as in `Source`.
    """
    if is_address(name):
        shown = redact(name).rstrip("/")
        yield Source(shown, namespace, url=without_query(name), base=base), read_address(name, shown, timeout_s)
        return
    for file in find_files(name):
        read_other = None if name == "-" else partial(read_beside, file, [MAX_BYTES])
        source = Source(file.path, namespace, folder=file.folder, files=file.files, read_file=read_other, base=base)
        yield source, read_file(file)


def live_source(
    name: str, ask: Callable[[], Json], namespace: str, url: str = "", command: Sequence[str] = ()
) -> tuple[Source, Stream]:
    """The list of a live service; `url` is its address or `command` starts it, if it is an MCP server."""
    server = stdio_server(command[0], command[1:]) if command else remote_server(url)
    entry = server_entry(server) if server else None
    source = Source(name, namespace, server=without_query(url), server_entry=entry)

    def values() -> Stream:
        if remarks := tuple(_remarks(source, url, command, server)):
            yield Location(name), MappedValue("", notes=remarks)
        yield Location(name), ask()

    return source, values()


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


def _live_server(server: Sequence[str], timeout_s: float, namespace: str) -> tuple[Source, Stream]:
    from mats.local.imports import mcp_servers  # noqa: PLC0415 - loads the MCP SDK for those who ask a live server

    first = server[0]
    if len(server) == 1 and is_address(first):
        ask = partial(mcp_servers.list_by_address, first, timeout_s=timeout_s)
        return live_source(redact(first), ask, namespace, first)
    ask = partial(mcp_servers.list_by_command, server, timeout_s=timeout_s)
    return live_source(first, ask, namespace, command=server)


def location_text(source: TrackedSource) -> str:
    """Where a source is, without what may be secret in an address or in arguments."""
    if source.kind is SourceKind.BEDROCK:
        return "bedrock"
    first = source.location[0]
    shown = redact(first) if is_address(first) else shlex.join(redact_arguments(source.location))
    return shown if source.kind is SourceKind.DOCUMENT else f"{source.kind} {shown}"


def definition_json(source: TrackedSource) -> dict[str, Any]:
    return {
        "name": source.name,
        "kind": source.kind,
        "from": location_text(source),
        "namespace": source.namespace or None,
        "timeout_s": source.timeout_s,
        **({"live": True} if source.live else {}),
    }


def state_json(state: SourceState) -> dict[str, Any]:
    """The definition, the number of entries, and the outcome of the latest sync; times are ISO 8601 in UTC."""
    return {
        **definition_json(state.source),
        "entries": state.entries,
        "gone": state.gone,
        "tried": state.run.tried or None,
        "succeeded": state.run.succeeded or None,
        "error": state.run.error or None,
    }
