"""Records of AWS Agent Registry, as its APIs `agent-registry` and `agent-registry-control` return them (2025-12-01).

A record holds documents as text: an MCP `server.json` with the server's tools, an A2A card, a SKILL.md.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, RegistrationInvalid
from mats.domain.protocols.mcp_server import best_first, remote_server, server_entry
from mats.domain.protocols.protocol import (
    Format,
    Json,
    MappedValue,
    Source,
    join_labels,
    objects,
    rejection,
    text_at,
    to_label,
    value_at,
)
from mats.local.imports.decoding import Undecodable, decode

_NAME, _RECORDS = "agent-registry", "registryRecords"
_DATA = (("mcpServer", "additionalData", "tools"), ("mcpServer",), ("a2aAgentCard",),
         ("agentSkillsDefinition", "additionalData", "skillMd"), ("agentSkillsDefinition",), ("custom",))  # fmt: skip
"""The places of documents in `descriptors`, those that say most first."""
_SHOWN = ("", "APPROVED", "DEPRECATED")


def _is_export(value: Json) -> bool:
    return any(_records(each) for each in (value if isinstance(value, list) else [value])[:10])


def _records(value: Json) -> list[Mapping[str, Any]]:
    if isinstance(found := value_at(value, _RECORDS), list):
        return [each for each in objects(found) if "recordType" in each]
    return [value] if isinstance(value, Mapping) and {"recordType", "recordId"} <= value.keys() else []


def _registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """What each record describes. Only approved and deprecated records are registered."""
    for each in value if isinstance(value, list) else [value]:
        for record in _records(each):
            where, status = f"{_RECORDS}[{text_at(record, 'name')[:100]}]", text_at(record, "status")
            if status not in _SHOWN:
                yield MappedValue(where, notes=(Fault("status", f"is {status[:40]}; skipped"),))
                continue
            changes = {"lifecycle": "deprecated"} if status == "DEPRECATED" else {}
            for mapped in _map_documents(record, source):
                yield replace(_with_record(mapped, record, changes), where=f"{where} {mapped.where}".rstrip())


def _map_documents(record: Mapping[str, Any], source: Source) -> list[MappedValue]:
    """Of the documents of a record, that which has something to register, or the first."""
    from mats.local.imports.formats import map_value  # noqa: PLC0415 - this module is one of its formats

    descriptors, tried = value_at(record, "descriptors"), list[list[MappedValue]]()
    for path in _DATA:
        text = text_at(descriptors, *path, "data")
        try:
            document = decode(text.encode(), name="SKILL.md" if path[-1] == "skillMd" else "") if text else None
        except (Undecodable, UnicodeError) as error:
            tried.append([rejection("", f"its document cannot be read: {error}")])
            continue
        if document is not None:
            of_tools = path[-1] == "tools"
            listed = list(map_value(document, _of_server(record, source) if of_tools else source))
            if any(mapped.registration for mapped in listed):
                return listed
            tried.append(listed)
    why = "has no document: export records with BatchGetDiscoverableRegistryRecord or GetRegistryRecord"
    return tried[0] if tried else [rejection("", why)]


def _of_server(record: Mapping[str, Any], source: Source) -> Source:
    """The source of tools: the server that the record describes beside them, in a namespace of its own."""
    described = value_at(record, "descriptors", "mcpServer")
    url = text_at(described, "source", "fromUrl", "url")
    with suppress(Undecodable, UnicodeError):
        remotes = best_first(value_at(decode(text_at(described, "data").encode(), name="server.json"), "remotes"))
        url = next(filter(None, (text_at(remote, "url") for remote in remotes)), url)
    server = remote_server(url)
    own = join_labels((source.namespace, to_label(text_at(record, "name")))) if source.namespace else ""
    return source._replace(server=url, server_entry=server_entry(server) if server else None, namespace=own)


def _with_record(mapped: MappedValue, record: Mapping[str, Any], changes: Mapping[str, str]) -> MappedValue:
    """With the record's version, where the document has none."""
    if not (registration := mapped.registration):
        return mapped
    version = {} if registration.version else {"version": text_at(record, "recordVersion")}
    try:
        return replace(mapped, registration=Registration.parse({**registration.item(), **version, **changes}))
    except RegistrationInvalid as error:
        return replace(mapped, registration=None, faults=error.faults, id=registration.id)


FORMAT = Format(_NAME, "records of AWS Agent Registry", 35, _is_export, _registrations)
