"""MCP's `server.json` (schema 2025-12-11 and those before it), alone or as MCP's registry lists it: one tool each.

A server is registered as one capability of kind `tool`. `mats import mcp` registers the tools of a live server one by
one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.descriptors import MCP
from mats.domain.errors import Fault
from mats.local.imports.formats import naming
from mats.local.imports.formats.mapping import (
    ItemDraft,
    Json,
    MappedValue,
    Source,
    map_each,
    objects,
    text_at,
    value_at,
)

NAME = "mcp-server"

_OFFICIAL = "io.modelcontextprotocol.registry/official"
_TRANSPORTS = ("streamable-http", "streamable", "http", "sse")
"""Best first: the last is deprecated."""


def detect(value: Json) -> bool:
    """A server, an entry or a response of the MCP registry, or a list that begins with a server."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], Mapping) and _is_server(_unwrap(value[0]))
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("servers"), list):
        return any(_is_server(_unwrap(entry)) for entry in objects(value["servers"])[:10])
    return _is_server(_unwrap(value))


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

    def one(where: str, entry: Mapping[str, Any]) -> MappedValue:
        return _server(where, _unwrap(entry), source)

    if isinstance(value, Mapping) and isinstance(value.get("servers"), list):
        yield from map_each("servers", value["servers"], one, what="servers")
        if value_at(value, "metadata", "nextCursor") or value_at(value, "metadata", "next_cursor"):
            note = Fault("nextCursor", "the list has more pages; import each")
            yield MappedValue("metadata.nextCursor", notes=(note,))
    elif isinstance(value, Mapping):
        yield one("", value)
    else:
        yield from map_each("", value, one, what="servers")


def _server(where: str, value: Mapping[str, Any], source: Source) -> MappedValue:
    official = value_at(value, "_meta", _OFFICIAL)
    status = text_at(official, "status") or text_at(value, "status")
    if value_at(official, "isLatest") is False or value_at(official, "is_latest") is False:
        return MappedValue(where, notes=(Fault("version", "is not the latest one; skipped"),))
    if status == "deleted":
        return MappedValue(where, notes=(Fault("status", "the registry has deleted it; skipped"),))
    draft = ItemDraft.create(where, "tool", value, format=NAME)
    owner, slash, short = text_at(value, "name").partition("/")
    name = short if slash else owner
    stated = naming.namespace_of_domain(owner) if slash else ""
    namespace = source.namespace or stated or naming.namespace_of_url(
        text_at(value, "repository", "url"), text_at(value, "websiteUrl"), text_at(value, "website_url"),
        *(text_at(remote, "url") for remote in objects(value.get("remotes"))), source.url,
    )  # fmt: skip
    if not namespace:
        draft.add_fault("namespace", naming.UNKNOWN_OWNER)
    draft.set("namespace", namespace)
    draft.set("name", name)
    if name:
        del draft.rest["name"]
    draft.move_text("description", "description", most=100_000)
    if not draft.move_text("version", "version", most=100):
        draft.set("version", text_at(value, "version_detail", "version")[:100])
    draft.set("endpoint", _endpoint(draft, value))
    draft.set_words("tags", [MCP])
    if status == "deprecated":
        draft.set("lifecycle", "deprecated")
    return draft.finish()


def _endpoint(draft: ItemDraft, value: Mapping[str, Any]) -> str:
    """The address of the best remote; empty for a server that is only a package."""
    remotes = [remote for remote in objects(value.get("remotes")) if text_at(remote, "url")]
    kinds = {id(remote): text_at(remote, "type") or text_at(remote, "transport_type") for remote in remotes}
    remotes.sort(key=lambda remote: _TRANSPORTS.index(kinds[id(remote)]) if kinds[id(remote)] in _TRANSPORTS else 9)
    url = text_at(remotes[0], "url") if remotes else ""
    if len(url) > 2_048:
        draft.add_note("endpoint", "is longer than 2,048 characters; it stays in the descriptor")
        return ""
    return url
