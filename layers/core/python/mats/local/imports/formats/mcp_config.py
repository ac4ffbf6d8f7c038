"""Files of MCP clients that name servers: `.mcp.json`, `claude_desktop_config.json`, `.vscode/mcp.json`; one tool each.

Of variables and headers only the names are kept, and arguments that may be secret are replaced by placeholders.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.errors import Fault
from mats.domain.protocols.descriptors import MCP, MCP_CONFIG, SERVER
from mats.domain.protocols.mcp_server import McpStdio, server_entry, server_of
from mats.local.imports.formats import naming
from mats.local.imports.formats.mapping import ItemDraft, MappedValue, Source, id_of_item, rejection
from mats.local.imports.formats.values import Json, text_at, value_at

NAME = MCP_CONFIG

_KEYS = ("mcpServers", "servers")


def servers_of(value: Json) -> tuple[str, Mapping[str, Any]] | None:
    """The key under which a file names its servers, and those; None if it is no such file."""
    for key in _KEYS:
        servers = value_at(value, key)
        entries = list(servers.values()) if isinstance(servers, Mapping) else []
        callable = [isinstance(one, Mapping) and ("command" in one or "url" in one) for one in entries]
        if isinstance(servers, Mapping) and (any(callable) or key == _KEYS[0]):
            return key, servers
    return None


def detect(value: Json) -> bool:
    """An object with `mcpServers`, or with `servers` that have a command or an address."""
    return servers_of(value) is not None


def map_value(value: Json, source: Source) -> Iterator[MappedValue]:
    """Each server by its name."""
    found = servers_of(value)
    if found is None:
        return
    key, servers = found
    if not servers:
        yield MappedValue(key, notes=(Fault(key, "names no server"),))
    for name, entry in servers.items():
        yield _server(f"{key}.{name}", name, entry, source)


def is_disabled(entry: Json) -> bool:
    """Whether a server is switched off, as some clients do."""
    return value_at(entry, "disabled") is True or value_at(entry, "enabled") is False


def _server(where: str, name: str, entry: Json, source: Source) -> MappedValue:
    server = server_of(entry)
    if server is None:
        return rejection(where, "must have a `command` with plain arguments, or an http or https `url`")
    if isinstance(server, McpStdio):
        url, reached = "", f"started by `{' '.join((server.command, *server.args))}`"
    else:
        url = server.url.partition("?")[0]
        reached = f"at {url}"
    namespace = source.namespace or naming.namespace_of_url(url)
    if is_disabled(entry):
        note = Fault(name, "is disabled; skipped")
        return MappedValue(where, notes=(note,), id=id_of_item({"namespace": namespace, "name": name}))
    draft = ItemDraft.create(where, "tool", namespace, {SERVER: server_entry(server)}, format=NAME)
    draft.set_text("name", name)
    draft.set_text("description", text_at(entry, "description") or f"The MCP server {name}, {reached}.")
    draft.set_endpoint(url)
    draft.set_words("tags", [MCP])
    return draft.finish()
