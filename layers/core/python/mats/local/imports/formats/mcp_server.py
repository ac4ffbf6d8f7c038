"""MCP's `server.json` (schema 2025-12-11 and those before it), alone or as MCP's registry lists it: one tool each.

A server is registered as one capability of kind `tool`. `mats import mcp` registers the tools of a live server one by
one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.errors import Fault
from mats.domain.protocols.descriptors import MCP
from mats.local.imports.formats import naming
from mats.local.imports.formats.mapping import ItemDraft, MappedValue, Source, id_of_item, map_each, map_one_or_each
from mats.local.imports.formats.values import Json, first_of, objects, text_at, value_at

NAME = "mcp-server"

_OFFICIAL = "io.modelcontextprotocol.registry/official"
_TRANSPORTS = ("streamable-http", "streamable", "http", "sse")
"""Best first: the last is deprecated."""


def detect(value: Json) -> bool:
    """A server, an entry or a response of the MCP registry, or a list that begins with a server."""
    if isinstance(listed := value_at(value, "servers"), list):
        return any(_is_server(_unwrap(entry)) for entry in objects(listed)[:10])
    first = first_of(value)
    return isinstance(first, Mapping) and _is_server(_unwrap(first))


def _is_server(value: Mapping[str, Any]) -> bool:
    schema = value.get("$schema")
    if isinstance(schema, str) and "server.schema.json" in schema:
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


def map_value(value: Json, source: Source) -> Iterator[MappedValue]:
    """The server, or each of a list."""
    if isinstance(listed := value_at(value, "servers"), list):
        yield from map_each("servers", listed, source, _server, what="servers")
        if value_at(value, "metadata", "nextCursor") or value_at(value, "metadata", "next_cursor"):
            note = Fault("nextCursor", "the list has more pages; import each")
            yield MappedValue("metadata.nextCursor", notes=(note,))
    else:
        yield from map_one_or_each(value, source, _server, what="servers")


def _server(where: str, entry: Mapping[str, Any], source: Source) -> MappedValue:
    value = _unwrap(entry)
    official = value_at(value, "_meta", _OFFICIAL)
    status = text_at(official, "status") or text_at(value, "status")
    if value_at(official, "isLatest") is False or value_at(official, "is_latest") is False:
        return MappedValue(where, notes=(Fault("version", "is not the latest one; skipped"),))
    owner, slash, short = text_at(value, "name").partition("/")
    name = short if slash else owner
    stated = naming.namespace_of_domain(owner) if slash else ""
    namespace = source.namespace or stated or naming.namespace_of_url(
        text_at(value, "repository", "url"), text_at(value, "websiteUrl"), text_at(value, "website_url"),
        *(text_at(remote, "url") for remote in objects(value.get("remotes"))), source.url,
    )  # fmt: skip
    if status == "deleted":
        note = Fault("status", "the registry has deleted it; skipped")
        return MappedValue(where, notes=(note,), id=id_of_item({"namespace": namespace, "name": name}))
    draft = ItemDraft.create(where, "tool", namespace, value, format=NAME)
    draft.set("name", name)
    if name:
        del draft.rest["name"]
    draft.move_text("description")
    if not draft.move_text("version"):
        draft.set_text("version", text_at(value, "version_detail", "version"))
    draft.set_endpoint(_endpoint(value))
    draft.set_words("tags", [MCP])
    if status == "deprecated":
        draft.set("lifecycle", "deprecated")
    return draft.finish()


def _endpoint(value: Mapping[str, Any]) -> str:
    """The address of the best remote; empty for a server that is only a package."""
    remotes = [remote for remote in objects(value.get("remotes")) if text_at(remote, "url")]
    best = min(remotes, key=_rank, default=None)
    return text_at(best, "url")


def _rank(remote: Mapping[str, Any]) -> int:
    transport = text_at(remote, "type") or text_at(remote, "transport_type")
    return _TRANSPORTS.index(transport) if transport in _TRANSPORTS else len(_TRANSPORTS)
