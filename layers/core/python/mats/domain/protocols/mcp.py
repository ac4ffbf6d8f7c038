"""MCP: servers in a `server.json` or a client's configuration, tools of `tools/list`, and calls of them.

A server that a document describes is registered as one tool; `mats import mcp` registers the tools of a live server one
by one.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration
from mats.domain.protocols.descriptors import FORMAT, MCP, SERVER, has_tag
from mats.domain.protocols.mcp_server import (
    McpRemote,
    McpServer,
    McpStdio,
    address_transport,
    best_first,
    plain_entry,
    published_server,
    remote_server,
    server_entry,
    server_of,
)
from mats.domain.protocols.namespaces import join_labels, namespace_of_domain, namespace_of_url, to_label
from mats.domain.protocols.protocol import Format, ItemDraft, MappedValue, Protocol, Source, map_each, rejection, remark
from mats.domain.protocols.values import Json, first_of, mapping_at, objects, text_at, value_at
from mats.domain.text.redaction import name_variables

REGISTRY_META = "io.modelcontextprotocol.registry/official"
"""The entry of `_meta` in which MCP's registry tells about a server."""
_SERVER, _CONFIG, _TOOL = "mcp-server", "mcp-config", "mcp-tool"
_SCHEMAS = ("inputSchema", "input_schema")
_SERVER_SCHEMAS = ("server.schema.json", "server-card.schema.json")


def is_server(value: Json) -> bool:
    """True if a value is a `server.json`, an entry or a response of the MCP registry, or a list that begins with one.

    Of schema 2025-12-11, or one before it. Also a server card (SEP-2127), which has the same attributes.
    """
    if isinstance(listed := value_at(value, "servers"), list):
        return any(_is_server(_unwrap(entry)) for entry in objects(listed)[:10])
    first = first_of(value)
    return isinstance(first, Mapping) and _is_server(_unwrap(first))


def _is_server(value: Mapping[str, Any]) -> bool:
    schema = value.get("$schema")
    if isinstance(schema, str) and schema.endswith(_SERVER_SCHEMAS):
        return True
    is_listed = isinstance(value.get("packages"), list) or isinstance(value.get("remotes"), list)
    about = ("version", "version_detail", "description", "repository")
    return is_listed and isinstance(value.get("name"), str) and any(key in value for key in about)


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
        yield remark("metadata.nextCursor", "nextCursor", "the list has more pages; import each")


def _server(where: str, entry: Mapping[str, Any], source: Source) -> MappedValue:
    value = _unwrap(entry)
    official = value_at(value, "_meta", REGISTRY_META)
    status = text_at(official, "status") or text_at(value, "status")
    if value_at(official, "isLatest") is False or value_at(official, "is_latest") is False:
        return remark(where, "version", "is not the latest one; skipped")
    owner, slash, short = text_at(value, "name").partition("/")
    name = short if slash else owner
    remotes = [remote for remote in best_first(value.get("remotes")) if text_at(remote, "url")]
    stated = namespace_of_domain(owner) if slash else ""
    namespace = source.namespace or stated or namespace_of_url(
        text_at(value, "repository", "url"), text_at(value, "websiteUrl"), text_at(value, "website_url"),
        *(text_at(remote, "url") for remote in objects(value.get("remotes"))), source.url,
    )  # fmt: skip
    if status == "deleted":
        return remark(where, "status", "the registry has deleted it; skipped", namespace=namespace, name=name)
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
    if isinstance(reason := published_server(value), str) and reason:
        draft.add_note("packages", reason)
    return draft.finish()


_FORMS = (
    "mcpServers",  # Claude, Cursor, Windsurf, Cline, Roo, Gemini, LM Studio, Amazon Q, Kiro; as a list: Continue
    "projects * mcpServers",  # ~/.claude.json
    "mcp_servers",  # Codex
    "context_servers",  # Zed
    "servers", "mcp servers", "mcp.servers",  # VS Code, opencode 2
    "mcp",  # opencode, Crush
    "extensions",  # Goose
    "amp.mcpServers", "experimental modelContextProtocolServers",  # Amp, Continue's config.json
    "",  # .mcp.json without a key around: each of its values starts or reaches a server
)  # fmt: skip
"""Where clients' configurations have their servers: keys, `*` for any. The form of another client is a row here."""
_CERTAIN = frozenset({"mcpServers", "mcp_servers", "context_servers"})  # Keys of these configurations alone
_OF_CLIENT = frozenset({"settings", "source", "enabled"})  # Of entries that neither start nor reach a server
_OFF = (("disabled", True), ("enabled", False), ("isActive", False))


class ConfiguredServer(NamedTuple):
    """An entry of a client's configuration."""

    where: str
    name: str
    entry: Json

    @property
    def is_disabled(self) -> bool:
        return any(value_at(self.entry, key) is off for key, off in _OFF)

    @property
    def is_called(self) -> bool:
        """True if it says how the server is started or reached."""
        plain = plain_entry(self.entry)
        return bool(plain["command"] or str(plain["url"]).startswith(("http://", "https://", "$", "{env:")))


def servers_of(value: Json) -> list[ConfiguredServer] | None:
    """The servers that a client's configuration names, disabled ones too; None if it is none."""
    if not isinstance(value, Mapping) or "asyncapi" in value:
        return None
    found, is_certain = list[ConfiguredServer](), any(isinstance(value.get(key), Mapping | list) for key in _CERTAIN)
    for form in _FORMS:
        for place, servers in _at_path(value, form.split()):
            listed = [(text_at(each, "name"), each) for each in objects(servers)] or mapping_at(servers).items()
            known = [each for each in listed if form or each[0][:1] not in "$_"]
            named = [ConfiguredServer(f"{place}.{name}"[1:], name, each) for name, each in known]
            called = [one.is_called for one in named]
            if (any(called) or form.split()[-1] in _CERTAIN) if form else (called and all(called)):
                found += named
    return found if found or is_certain else None


def _at_path(value: Json, path: list[str], place: str = "") -> Iterator[tuple[str, Json]]:
    if not path:
        yield place, value
    elif isinstance(value, Mapping):
        for key in value if path[0] == "*" else value.keys() & {path[0]}:
            yield from _at_path(value[key], path[1:], f"{place}.{key}")


def config_registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """Each server of a client's configuration by its name.

    Of variables and headers only the names are kept; arguments that may be secret are replaced by placeholders.
    """
    servers = servers_of(value) or []
    for key in () if servers else _CERTAIN & mapping_at(value).keys():
        yield remark(key, key, "names no server")
    for server in servers:
        yield _from_config(server, source)


def _from_config(configured: ConfiguredServer, source: Source) -> MappedValue:
    where, name, entry = configured
    server = server_of(entry)
    namespace = source.namespace or namespace_of_url(_address_of(server))
    if configured.is_disabled or (not configured.is_called and mapping_at(entry).keys() & _OF_CLIENT):
        reason = "disabled" if configured.is_disabled else "part of the client itself"
        return remark(where, name, f"is {reason}; skipped", namespace=namespace, name=name)
    if server is None:
        if name_variables(str(plain_entry(entry)["url"])).startswith("{"):
            return rejection(
                where, "the `url` begins with a variable: write its scheme and host, such as https://x.com"
            )
        return rejection(where, "must have a `command` with plain arguments, or an http or https `url`")
    draft = _of_server(where, name, server, namespace, entry)
    if isinstance(server, McpStdio) and text_at(entry, "cwd"):
        draft.add_note("cwd", "is not kept: a call starts the command in the folder that it is made from")
    return draft.finish()


def _address_of(server: McpServer | None) -> str:
    return server.url.partition("?")[0] if isinstance(server, McpRemote) else ""


def _of_server(where: str, name: str, server: McpServer, namespace: str, about: Json) -> ItemDraft:
    """A draft of a server that is started or reached as a client would, with what is said about it."""
    url = _address_of(server)
    reached = f"at {url}"
    if isinstance(server, McpStdio):
        reached = f"started by `{' '.join((server.command, *server.args))}`"
    draft = ItemDraft.create(where, "tool", namespace, {SERVER: server_entry(server)}, format=_CONFIG)
    draft.set_text("name", name)
    draft.set_text("description", text_at(about, "description") or f"The MCP server {name}, {reached}.")
    draft.set_endpoint(url)
    draft.set_words("tags", [MCP])
    return draft


def is_manifest(value: Json) -> bool:
    """True if a value is the `manifest.json` of an MCP bundle (MCPB, formerly DXT)."""
    versions = (value_at(value, key) for key in ("manifest_version", "dxt_version"))
    return any(versions) and isinstance(value_at(value, "server"), Mapping)


def manifest_registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """The server of a bundle, started as its manifest says. Its tools are described, not registered one by one."""
    server = server_of(value_at(value, "server", "mcp_config"))
    if server is None:
        yield rejection(
            "server", "must have a `mcp_config` with a `command` and plain arguments: nothing else starts it"
        )
        return
    owners = (text_at(value, "repository", "url"), text_at(value, "homepage"), text_at(value, "author", "url"))
    namespace = source.namespace or namespace_of_url(_address_of(server), *owners, source.url)
    draft = _of_server("", text_at(value, "name"), server, namespace, value)
    draft.set_text("version", text_at(value, "version"))
    draft.set_text("provider", text_at(value, "author", "name"))
    described = {"title": text_at(value, "display_name"), "tools": objects(value_at(value, "tools"))}
    draft.rest |= {key: each for key, each in described.items() if each}
    if "dirname" in server.inputs:
        draft.add_note("server", "is started from the bundle's unpacked folder: a call needs `--set dirname=...`")
    yield draft.finish()


def is_tool_list(value: Json) -> bool:
    """True if a value is a result with `tools`, a list of these or of tools, or an object of them by server."""
    first = first_of(value)
    return _is_page(first) or (isinstance(value, list) and _is_tool(first)) or bool(_by_server(value))


def _is_page(value: object) -> bool:
    """True if a value is a page: an empty list of tools is one, an object with other things in `tools` is not."""
    answer = _result(value)
    tools = answer.get("tools")
    if not isinstance(tools, list):
        return False
    response = isinstance(value, Mapping) and "jsonrpc" in value
    empty = not tools and answer.keys() <= {"tools", "nextCursor", "_meta"}
    return response or empty or any(_is_tool(tool, *_SCHEMAS, "description") for tool in tools)


def _is_tool(value: object, *marks: str) -> bool:
    is_named = isinstance(value, Mapping) and isinstance(value.get("name"), str)
    return is_named and any(key in mapping_at(value) for key in marks or _SCHEMAS)


def _by_server(value: Json) -> Mapping[str, Json]:
    """The pages by the names of their servers, of an object whose every value is a page or a list of tools."""
    listed = mapping_at(value, "servers") or mapping_at(value)
    pages = {name: {"tools": each} if isinstance(each, list) else each for name, each in listed.items()}
    return pages if not _is_page(value) and all(_is_page(page) and page.get("tools") for page in pages.values()) else {}


def _result(value: object) -> Mapping[str, Any]:
    """The result of a response, or the result itself."""
    return mapping_at(value, "result") or mapping_at(value)


def tool_registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """Each tool of a result of `tools/list`, of the JSON-RPC response, of pages of them, or of a list of tools.

    A last page with a cursor has a note. The tools of several servers are in a namespace of its own for each.
    """
    by_server = _by_server(value)
    for server, page in by_server.items():
        own = join_labels((source.namespace, to_label(server))) if source.namespace else ""
        yield from _page(f"{server}.", page, source._replace(namespace=own), last=True)
    if isinstance(value, list) and value and not _is_page(value[0]):
        yield from map_each("", value, source, _tool, what="tools")
    elif isinstance(value, list):
        for position, page in enumerate(value):
            yield from _page(f"[{position}].", page, source, last=position == len(value) - 1)
    elif not by_server:
        yield from _page("", value, source, last=True)


def _page(where: str, page: object, source: Source, *, last: bool) -> Iterator[MappedValue]:
    if isinstance(error := value_at(page, "error"), Mapping):
        yield rejection(f"{where}error", f"the server answered with an error: {text_at(error, 'message')[:200]!r}")
        return
    answer = _result(page)
    yield from map_each(f"{where}tools", answer.get("tools"), source, _tool, what="tools")
    if last and not where and answer.get("tools") == []:
        yield remark("tools", "tools", "the list is empty")
    if last and answer.get("nextCursor"):
        message = "the list has more pages; `mats import mcp` reads all of them"
        yield remark(f"{where}nextCursor", "nextCursor", message)


def _tool(where: str, tool: Mapping[str, Any], source: Source) -> MappedValue:
    namespace = source.namespace or namespace_of_url(source.server, source.url)
    draft = ItemDraft.create(where, "tool", namespace, tool, format=_TOOL)
    draft.move_text("name")
    if not draft.move_text("description"):
        draft.set("description", text_at(tool, "title") or text_at(tool, "annotations", "title"))
    draft.move_schema(_SCHEMAS)
    draft.set_endpoint(source.server)
    if source.server_entry:
        draft.rest[SERVER] = dict(source.server_entry)
    draft.set_words("tags", [MCP])
    return draft.finish()


def invocation(registration: Registration, descriptor: Mapping[str, Any]) -> McpStdio | McpRemote | None:
    """The server that the descriptor describes, or one at the endpoint, if that is declared to be an MCP server."""
    format = descriptor.get(FORMAT)
    if format == _SERVER:
        published = published_server(descriptor)
        return None if isinstance(published, str) else published
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
        Format(
            _CONFIG,
            "a client's configuration of MCP servers",
            50,
            lambda value: servers_of(value) is not None,
            config_registrations,
        ),
        Format("mcp-manifest", "an MCP bundle's manifest.json", 45, is_manifest, manifest_registrations),
        Format("mcp-tools", "an MCP tools/list result", 80, is_tool_list, tool_registrations),
    ),
    searched={_SERVER: frozenset({"tools"}), _CONFIG: frozenset({"tools"}), _TOOL: frozenset({"outputSchema"})},
    invocation=invocation,
)
