"""List the tools of live MCP servers: all pages; no tool is called. Import this module late."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from mats.client.mcp_session import GRACE_S, ServerFailed, ask_address, ask_command, list_tools
from mats.domain.errors import DependencyFailed, Fault, Invalid, RequestInvalid
from mats.domain.protocols.addresses import redact, without_query
from mats.domain.protocols.mcp import ConfiguredServer, servers_of
from mats.domain.protocols.mcp_server import McpStdio, as_text, plain_entry, server_entry, server_of
from mats.domain.protocols.namespaces import join_labels, namespace_of_url, to_label
from mats.domain.protocols.protocol import Source
from mats.domain.protocols.values import Json, mapping_at, text_at
from mats.local.imports.decoding import MAX_BYTES as MAX_DOCUMENT_BYTES
from mats.local.imports.decoding import decode
from mats.local.imports.files import Location, Stream, is_address
from mats.settings import variable_of


def list_by_command(
    command: Sequence[str], *, timeout_s: float, grace_s: float = GRACE_S, env: Mapping[str, str] | None = None
) -> Json:
    """The tools of a server that a command starts; `env` is added to the environment. Raises as `ask_command`."""
    return ask_command(command, list_tools, timeout_s=timeout_s, env={**os.environ, **(env or {})}, grace_s=grace_s)


def list_by_address(url: str, *, timeout_s: float, headers: Mapping[str, str] | None = None) -> Json:
    """The tools of a server at an address. Raises as `ask_address`."""
    try:
        return ask_address(url, list_tools, timeout_s=timeout_s, headers=headers)
    except ServerFailed as error:
        if "requires authentication" not in str(error):
            raise
        raise ServerFailed(f"{error}; save its tools/list result to a file and import that") from error


_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_UNKNOWN = re.compile(r"\$\{[^}]*\}")


def open_servers(path: str, namespace: str, timeout_s: float) -> Iterator[tuple[Source, Stream]]:
    """The tools of each server in a client's configuration; the reason instead, for one that does not list them.

    The tools of a server are in a namespace of its own below `namespace`, without one in that of its address. Raises
    RequestInvalid: it is no such file on this machine: mats starts no command that another machine names.
    """
    for server in servers_in(path):
        if not is_mats(server):
            yield _open(path, server, namespace, timeout_s)


def servers_in(path: str) -> list[ConfiguredServer]:
    """The servers of a client's configuration that are not disabled.

    Raises RequestInvalid: it is no such file on this machine; Undecodable: it is malformed.
    """
    if is_address(path) or not Path(path).is_file():
        raise RequestInvalid([Fault("--live", "is for the file of an MCP client on this machine")])
    with Path(path).open("rb") as file:
        found = servers_of(decode(file.read(MAX_DOCUMENT_BYTES + 1), name=path))
    if found is None:
        raise RequestInvalid([Fault("--live", f"is for the file of an MCP client, and {path} is none")])
    return [server for server in found if not server.is_disabled]


def is_mats(configured: ConfiguredServer) -> bool:
    """True if a server is mats itself, whose tools are no capabilities of its registry."""
    server = server_of(configured.entry)
    if not isinstance(server, McpStdio):
        return configured.name == "mats"
    return "mcp" in server.args and (Path(server.command).name == "mats" or "mats.local.cli" in server.args)


def home_of(configured: ConfiguredServer) -> str:
    """The registry that an entry for mats itself names; empty if it names none, or by a variable of its client."""
    entry = plain_entry(configured.entry)
    args = " ".join(entry["args"]).replace("--home=", "--home ").split()
    variables = (text_at(configured.entry, key, variable_of("home")) for key in ("env", "environment", "envs"))
    named = next(filter(None, variables), "") or next((two for one, two in pairwise(args) if one == "--home"), "")
    return "" if "${" in named else named


def _open(path: str, configured: ConfiguredServer, namespace: str, timeout_s: float) -> tuple[Source, Stream]:
    place, entry = Location(path, where=configured.where), plain_entry(configured.entry)
    server = server_of(configured.entry)
    url = entry["url"] if not entry["command"] else None
    shown = without_query(url) if isinstance(url, str) and "${" not in url else ""
    own = join_labels((namespace, to_label(configured.name))) if namespace else namespace_of_url(shown)

    def tools() -> Stream:
        try:
            if server is None:
                raise Invalid([Fault("", "must have a `command` with plain arguments, or an http or https `url`")])
            if not own:
                raise Invalid([Fault("", "does not name its owner: give --namespace, such as com.acme")])
            yield place, _list_configured(_fill_in(entry), timeout_s)
        except (DependencyFailed, Invalid) as error:
            yield place, Invalid([Fault(place.where, str(error))])

    return Source(place.file, own, server=shown, server_entry=server_entry(server) if server else None), tools()


def _list_configured(entry: Mapping[str, Any], timeout_s: float) -> Json:
    if command := entry["command"]:
        return list_by_command([command, *entry["args"]], timeout_s=timeout_s, env=_texts(entry["env"]))
    url = str(entry["url"])
    try:
        return list_by_address(url, timeout_s=timeout_s, headers=_texts(entry["headers"]))
    except DependencyFailed as error:
        raise DependencyFailed(f"{redact(url)}: {error}") from error


def _texts(value: object) -> dict[str, str]:
    return {str(name): text for name, each in mapping_at(value).items() if (text := as_text(each)) is not None}


def _fill_in(value: Any) -> Any:
    """The entry with `${VARIABLE}` and `${VARIABLE:-default}` replaced from the environment."""
    if isinstance(value, str):
        text = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0] if found[2] is None else found[2]), value)
        if left := _UNKNOWN.search(text):
            raise Invalid([Fault("", f"{left[0][:80]} has no value here: set it in the environment")])
        return text
    if isinstance(value, Mapping):
        return {key: _fill_in(inner) for key, inner in value.items()}
    return [_fill_in(inner) for inner in value] if isinstance(value, list) else value
