"""MCP: servers in a `server.json` or a client's configuration, tools of `tools/list`, and calls of them.

A server that a document describes is registered as one tool; `mats import mcp` registers the tools of a live server one
by one.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault
from mats.domain.protocols import skill
from mats.domain.protocols.descriptors import FORMAT, MCP, SERVER, has_tag
from mats.domain.protocols.mcp_server import (
    McpRemote,
    McpStdio,
    address_transport,
    best_first,
    published_server,
    remote_server,
    server_entry,
    server_of,
)
from mats.domain.protocols.protocol import (
    Format,
    ItemDraft,
    Json,
    MappedValue,
    Protocol,
    Source,
    first_of,
    id_of_item,
    map_each,
    namespace_of_domain,
    namespace_of_url,
    objects,
    rejection,
    text_at,
    value_at,
)

REGISTRY_META = "io.modelcontextprotocol.registry/official"
"""The entry of `_meta` in which MCP's registry tells about a server."""
_SERVER, _CONFIG, _TOOL = "mcp-server", "mcp-config", "mcp-tool"
_SCHEMAS = ("inputSchema", "input_schema")
_CONFIG_KEYS = ("mcpServers", "servers")
_SERVER_SCHEMAS = ("server.schema.json", "server-card.schema.json")


def is_server(value: Json) -> bool:
    """True if a value is a `server.json`, an entry or a response of the MCP registry, or a list that begins with one.

    Of schema 2025-12-11, or one before it. Also a server card: of SEP-2127, which has the same attributes, or before.
    """
    if isinstance(listed := value_at(value, "servers"), list):
        return any(_is_server(_unwrap(entry)) for entry in objects(listed)[:10])
    first = first_of(value)
    return isinstance(first, Mapping) and _is_server(_unwrap(first))


def _is_server(value: Mapping[str, Any]) -> bool:
    schema = value.get("$schema")
    if (isinstance(schema, str) and schema.endswith(_SERVER_SCHEMAS)) or _is_early_card(value):
        return True
    is_listed = isinstance(value.get("packages"), list) or isinstance(value.get("remotes"), list)
    about = ("version", "version_detail", "description", "repository")
    return is_listed and isinstance(value.get("name"), str) and any(key in value for key in about)


def _is_early_card(value: Mapping[str, Any]) -> bool:
    """True if a value is a server card as SEP-1649 had it, whose name and address are in objects of their own."""
    is_named = isinstance(value_at(value, "serverInfo", "name"), str) and "jsonrpc" not in value
    return is_named and any(key in value for key in ("transport", "endpoint", "url", "remotes", "tools"))


def _to_current_card(card: Mapping[str, Any], base: str) -> Mapping[str, Any]:
    """An early card as SEP-2127 has it; addresses are relative to `base`."""
    info, transport = card["serverInfo"], card.get("transport")
    address = next(
        filter(None, (text_at(level, key) for level in (transport, card) for key in ("endpoint", "url"))), ""
    )
    url = _join_address(base, address)
    remotes = card.get("remotes") or ([{"type": "streamable-http", "url": url}] if url else [])
    rest = {key: value for key, value in card.items() if key not in ("serverInfo", "transport", "endpoint", "url")}
    return {**info, **rest, "remotes": remotes}


def _join_address(base: str, address: str) -> str:
    """An absolute address; empty if there is none."""
    try:
        joined = urljoin(base, address) if address else ""
    except ValueError:
        return ""
    return joined if joined.startswith(("http://", "https://")) else ""


def _unwrap(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The server of a registry entry, with the registry's metadata."""
    server = value.get("server")
    if not isinstance(server, Mapping):
        return value
    return {**server, **({"_meta": value["_meta"]} if "_meta" in value else {})}


def server_registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    if not isinstance(listed := value_at(value, "servers"), list):
        yield from map_each("", value, source, _server, what="servers")
        return
    yield from map_each("servers", listed, source, _server, what="servers")
    if value_at(value, "metadata", "nextCursor") or value_at(value, "metadata", "next_cursor"):
        yield MappedValue("metadata.nextCursor", notes=(Fault("nextCursor", "the list has more pages; import each"),))


def _server(where: str, entry: Mapping[str, Any], source: Source) -> MappedValue:
    value = _unwrap(entry)
    if _is_early_card(value):
        value = _to_current_card(value, source.url)
    official = value_at(value, "_meta", REGISTRY_META)
    status = text_at(official, "status") or text_at(value, "status")
    if value_at(official, "isLatest") is False or value_at(official, "is_latest") is False:
        return MappedValue(where, notes=(Fault("version", "is not the latest one; skipped"),))
    owner, slash, short = text_at(value, "name").partition("/")
    name = short if slash else owner
    remotes = [remote for remote in best_first(value.get("remotes")) if text_at(remote, "url")]
    stated = namespace_of_domain(owner) if slash else ""
    namespace = source.namespace or stated or namespace_of_url(
        text_at(value, "repository", "url"), text_at(value, "websiteUrl"), text_at(value, "website_url"),
        *(text_at(remote, "url") for remote in objects(value.get("remotes"))), source.url,
    )  # fmt: skip
    if status == "deleted":
        note = Fault("status", "the registry has deleted it; skipped")
        return MappedValue(where, notes=(note,), id=id_of_item({"namespace": namespace, "name": name}))
    draft = ItemDraft.create(where, "tool", namespace, value, format=_SERVER)
    draft.set("name", name)
    if name:
        del draft.rest["name"]
    draft.move_text("description")
    if not draft.move_text("version"):
        draft.set_text("version", text_at(value, "version_detail", "version"))
    draft.set_endpoint(text_at(remotes[0], "url") if remotes else "")
    draft.set_words("tags", [MCP])
    if status == "deprecated":
        draft.set("lifecycle", "deprecated")
    return draft.finish()


def servers_of(value: Json) -> tuple[str, Mapping[str, Any]] | None:
    """The key under which a client's configuration names its servers, and those; None if it is none.

    Clients have `.mcp.json`, `claude_desktop_config.json` and `.vscode/mcp.json`.
    """
    for key in _CONFIG_KEYS:
        servers = value_at(value, key)
        if isinstance(servers, Mapping) and (
            key == _CONFIG_KEYS[0] or any("command" in one or "url" in one for one in objects([*servers.values()]))
        ):
            return key, servers
    return None


def is_disabled(entry: Json) -> bool:
    """True if a server is switched off, as some clients do."""
    return value_at(entry, "disabled") is True or value_at(entry, "enabled") is False


def config_registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """Each server of a client's configuration by its name.

    Of variables and headers only the names are kept; arguments that may be secret are replaced by placeholders.
    """
    key, servers = servers_of(value) or ("", {})
    if key and not servers:
        yield MappedValue(key, notes=(Fault(key, "names no server"),))
    for name, entry in servers.items():
        yield _from_config(f"{key}.{name}", name, entry, source)


def _from_config(where: str, name: str, entry: Json, source: Source) -> MappedValue:
    server = server_of(entry)
    if server is None:
        return rejection(where, "must have a `command` with plain arguments, or an http or https `url`")
    if isinstance(server, McpStdio):
        url, reached = "", f"started by `{' '.join((server.command, *server.args))}`"
    else:
        url = server.url.partition("?")[0]
        reached = f"at {url}"
    namespace = source.namespace or namespace_of_url(url)
    if is_disabled(entry):
        note = Fault(name, "is disabled; skipped")
        return MappedValue(where, notes=(note,), id=id_of_item({"namespace": namespace, "name": name}))
    draft = ItemDraft.create(where, "tool", namespace, {SERVER: server_entry(server)}, format=_CONFIG)
    draft.set_text("name", name)
    draft.set_text("description", text_at(entry, "description") or f"The MCP server {name}, {reached}.")
    draft.set_endpoint(url)
    draft.set_words("tags", [MCP])
    return draft.finish()


def is_tool_list(value: Json) -> bool:
    """True if a value is a result or response with `tools`, or a list that begins with a tool or a response."""
    first = first_of(value)
    return _is_page(first) or (isinstance(value, list) and _is_tool(first))


def _is_page(value: object) -> bool:
    """True if a value is a page: an empty list of tools is one, an object with other things in `tools` is not."""
    answer = _result(value)
    tools = answer.get("tools")
    if not isinstance(tools, list):
        return False
    response = isinstance(value, Mapping) and "jsonrpc" in value
    empty = not tools and answer.keys() <= {"tools", "skills", "nextCursor", "_meta"}
    return response or empty or any(map(_is_tool, tools))


def _is_tool(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str) and any(key in value for key in _SCHEMAS)


def _result(value: object) -> Mapping[str, Any]:
    """The result of a response, or the result itself."""
    if not isinstance(value, Mapping):
        return {}
    result = value.get("result")
    return result if isinstance(result, Mapping) else value


def tool_registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """Each tool of a result of `tools/list`, of the JSON-RPC response, of pages of them, or of a list of tools.

    A last page with a cursor has a note.
    """
    if isinstance(value, list) and value and not _is_page(value[0]):
        yield from map_each("", value, source, _tool, what="tools")
    elif isinstance(value, list):
        for position, page in enumerate(value):
            yield from _page(f"[{position}].", page, source, last=position == len(value) - 1)
    else:
        yield from _page("", value, source, last=True)


def _page(where: str, page: object, source: Source, *, last: bool) -> Iterator[MappedValue]:
    if isinstance(error := value_at(page, "error"), Mapping):
        yield rejection(f"{where}error", f"the server answered with an error: {text_at(error, 'message')[:200]!r}")
        return
    answer = _result(page)
    yield from map_each(f"{where}tools", answer.get("tools"), source, _tool, what="tools")
    yield from skill.served_registrations(answer.get("skills"), source)
    if last and not where and answer.get("tools") == [] and not answer.get("skills"):
        yield MappedValue("tools", notes=(Fault("tools", "the list is empty"),))
    if last and answer.get("nextCursor"):
        note = Fault("nextCursor", "the list has more pages; `mats import mcp` reads all of them")
        yield MappedValue(f"{where}nextCursor", notes=(note,))


def _tool(where: str, tool: Mapping[str, Any], source: Source) -> MappedValue:
    namespace = source.namespace or namespace_of_url(source.server, source.url)
    draft = ItemDraft.create(where, "tool", namespace, tool, format=_TOOL)
    draft.move_text("name")
    if not draft.move_text("description"):
        draft.set("description", text_at(tool, "title") or text_at(tool, "annotations", "title"))
    key = next((key for key in _SCHEMAS if tool.get(key) is not None), None)
    if key and isinstance(tool[key], Mapping):
        draft.item["input_schema"] = draft.rest.pop(key)
    elif key:
        draft.add_note("input_schema", f"`{key}` is not an object; it stays in the descriptor")
    draft.set_endpoint(source.server, is_in_descriptor=False)
    if source.server_entry:
        draft.rest[SERVER] = dict(source.server_entry)
    draft.set_words("tags", [MCP])
    return draft.finish()


def invocation(registration: Registration, descriptor: Mapping[str, Any]) -> McpStdio | McpRemote | None:
    """The server that the descriptor describes, or one at the endpoint, if that is declared to be an MCP server."""
    format = descriptor.get(FORMAT)
    if format == _SERVER:
        return published_server(descriptor)
    if format == _CONFIG:
        return server_of(descriptor.get(SERVER))
    tool = registration.name if registration.kind is Kind.TOOL else ""
    if found := server_of(descriptor.get(SERVER), tool):
        return found
    declared = format == _TOOL or has_tag(registration, MCP) or address_transport(registration.endpoint)
    return remote_server(registration.endpoint, tool=tool) if declared and "method" not in descriptor else None


PROTOCOL = Protocol(
    formats=(
        Format(_SERVER, "an MCP server.json or server card", 40, is_server, server_registrations),
        Format(_CONFIG, "an `mcpServers` file", 50, lambda value: servers_of(value) is not None, config_registrations),
        Format("mcp-tools", "an MCP tools/list result", 80, is_tool_list, tool_registrations),
    ),
    searched={_SERVER: frozenset({"tools"}), _CONFIG: frozenset(), _TOOL: frozenset({"outputSchema"})},
    invocation=invocation,
)
