"""Open any source that an argument of `mats import` or `mats source add` names."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from mats.bootstrap.models import bedrock_catalogue
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.sync import SourceKind
from mats.local.imports.addresses import is_address, redact, split_url, without_query
from mats.local.imports.formats import Source
from mats.local.imports.sources import Stream, live_source, open_sources
from mats.settings import Settings

LIVE = "`mcp -- COMMAND...`, `mcp URL`, `mcp-registry URL`, `a2a URL`, `ard URL`, `bedrock`"
"""Sources that are not named by a path or an address alone, for help."""
_BY_ADDRESS = (SourceKind.MCP_REGISTRY, SourceKind.ARD, SourceKind.A2A)


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of a source, to be consumed in order."""

    sources: Iterable[tuple[Source, Stream]]
    is_whole: bool = True
    """Whether it lists everything, not only what changed since a time."""
    cursor: Callable[[str], str] = lambda now: ""
    """After all values: the `since` of the next reading, given the time now."""


def parse_location(what: Sequence[str]) -> tuple[SourceKind, tuple[str, ...]]:
    """The kind of a source and its location from arguments: `mcp -- COMMAND`, `mcp-registry URL`, a file or an address.

    Raises:
        RequestInvalid: an address is missing or not valid, or there is more than one source.
    """
    match what:
        case ["bedrock"]:
            return SourceKind.BEDROCK, ()
        case ["mcp"]:
            raise RequestInvalid([Fault("mcp", "needs a server: give `mcp -- COMMAND...` or `mcp URL`")])
        case ["mcp", *server]:
            if len(server) == 1 and is_address(server[0]):
                split_url(server[0])
            return SourceKind.MCP, tuple(server)
        case [kind, *rest] if kind in _BY_ADDRESS:
            if len(rest) != 1 or not is_address(rest[0]):
                raise RequestInvalid([Fault(kind, f"needs an address: give `{kind} URL`")])
            split_url(rest[0])
            return SourceKind(kind), (rest[0],)
        case [name]:
            if is_address(name):
                split_url(name)
            return SourceKind.DOCUMENT, (name,)
    raise RequestInvalid([Fault("WHAT", "must be one source: a file, a folder, an address, or `mcp -- COMMAND...`")])


def open_reading(
    kind: SourceKind,
    location: Sequence[str],
    settings: Settings,
    *,
    namespace: str = "",
    timeout_s: float = 30,
    live: bool = False,
    since: str = "",
) -> Reading:
    """Open a source; nothing is read before its values are. `since` is the cursor of an earlier reading.

    With `live`, the servers that an `mcpServers` file names are asked for their tools.
    """
    match kind:
        case SourceKind.BEDROCK:
            return Reading([live_source("bedrock", lambda: bedrock_catalogue(settings), namespace)])
        case SourceKind.MCP:
            return Reading([_live_server(list(location), timeout_s, namespace)])
        case SourceKind.DOCUMENT if live:
            from mats.local.imports.mcp_config_live import open_servers  # noqa: PLC0415 - loads the MCP SDK

            return Reading(open_servers(location[0], namespace, timeout_s))
        case SourceKind.DOCUMENT:
            return Reading(open_sources(os.fspath(location[0]), namespace, timeout_s))
    from mats.local.imports import http, well_known  # noqa: PLC0415 - loads the HTTP library only for addresses
    from mats.local.imports.mcp_registry import McpRegistry  # noqa: PLC0415 - as above

    (url,) = location
    fetch = partial(http.fetch, timeout_s=timeout_s)
    source = Source(redact(url), namespace, url=without_query(url))
    if kind is SourceKind.MCP_REGISTRY:
        registry = McpRegistry(url, fetch, since=since)
        return Reading([(source._replace(url=""), registry.pages())], not since, registry.cursor)
    values = well_known.agent_card if kind is SourceKind.A2A else well_known.catalog
    return Reading([(source, values(url, fetch))])


def _live_server(server: list[str], timeout_s: float, namespace: str) -> tuple[Source, Stream]:
    from mats.local.imports import mcp_client  # noqa: PLC0415 - loads the MCP SDK for those who ask a live server

    if len(server) == 1 and is_address(server[0]):
        url = server[0]
        return live_source(redact(url), lambda: mcp_client.list_by_address(url, timeout_s=timeout_s), namespace, url)
    return live_source(
        server[0], lambda: mcp_client.list_by_command(server, timeout_s=timeout_s), namespace, command=server
    )
