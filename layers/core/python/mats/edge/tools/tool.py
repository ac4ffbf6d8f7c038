"""Capabilities as tool definitions, independent of the API of a model."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from mats.domain.capability.capability import Id, Kind, Lifecycle, parts
from mats.domain.profile.profile import Profile, SourceText
from mats.domain.protocols.catalogue import Invocation, from_text
from mats.domain.text.fence import remove_hidden, visible
from mats.domain.text.words import clip, split_identifier
from mats.edge.tools.json_schema import drop_invalid_keywords, resolve_reference, shorten_descriptions

MAX_NAME = 64
_MAX_DESCRIPTION = 1_024
"""Characters; the smallest limit of the supported APIs."""
_VALID_NAME = re.compile(r"[A-Za-z0-9_-]+")
_VALID_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of top-level properties that Claude accepts, also on Bedrock; with any other it rejects the whole request."""
_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9-]+")
_DIGEST = 16
_SLASH = "___"
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_NOT_AT_THE_TOP = (*_ALTERNATIVES, "$ref", "not", "enum", "const", "if", "then", "else")

_MESSAGE = {"type": "string", "description": "What to say to it, in full."}
_DEFAULT_SCHEMAS: Mapping[Kind, dict[str, Any]] = {
    kind: {"type": "object", "properties": {"message": _MESSAGE}, "required": ["message"]}
    for kind in (Kind.AGENT, Kind.MODEL)
}
"""The input of agents and models that declare none."""
_NO_PROPERTIES: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class ToolDefinition:
    """A capability as a tool. The name is valid in every API and unique to the id."""

    id: Id
    kind: Kind
    name: str
    title: str
    description: str
    schema: dict[str, Any]
    invocation: Invocation | None = None

    @cached_property
    def flat_schema(self) -> dict[str, Any]:
        """The schema for APIs that take no alternatives at its top: the properties of all, none of them required.

        It accepts everything that the original accepts, and is valid JSON Schema 2020-12.
        """
        whole = drop_invalid_keywords(self.schema)
        flat = {key: value for key, value in whole.items() if key not in _NOT_AT_THE_TOP}
        offered: dict[str, list[Any]] = {}
        options = [option for word in _ALTERNATIVES for option in _list(self.schema.get(word), of=dict)]
        for option in (whole, *map(drop_invalid_keywords, options)):
            for name, schema in _properties(resolve_reference(option, whole).get("properties")).items():
                offered.setdefault(name, []).append(schema)
        merged = {name: _any_of(schemas) for name, schemas in offered.items()}
        return {**flat, "properties": {**merged, **whole["properties"]}}

    @cached_property
    def plain_schema(self) -> dict[str, Any] | None:
        """The flat schema without properties whose names some API rejects; None if one of them is required."""
        properties = self.flat_schema["properties"]
        plain = {name: schema for name, schema in properties.items() if _VALID_PROPERTY.fullmatch(name)}
        lacking = properties.keys() - plain.keys()
        if not lacking.isdisjoint(self.flat_schema.get("required", ())):
            return None
        return {**self.flat_schema, "properties": plain} if lacking else self.flat_schema

    def shorten(self, most: int) -> Self:
        """The same with descriptions of inputs of at most `most` characters; with 0 there are none."""
        return replace(self, schema=shorten_descriptions(self.schema, most))


def tool_of(profile: Profile) -> ToolDefinition:
    """The tool definition of a capability.

    Without a schema, a tool takes anything, an agent or a model takes a message. A skill takes nothing: calling it asks
    for its instructions.
    """
    kind = profile.indexed_kind
    return ToolDefinition(
        id=profile.id,
        kind=kind,
        name=tool_name(profile.id),
        title=visible(profile.name),
        description=_description(profile, kind),
        schema=_schema(profile.input_schema) or _DEFAULT_SCHEMAS.get(kind) or _NO_PROPERTIES,
        invocation=from_text(profile.invocation),
    )


def tool_name(id: Id) -> str:
    """The name of a capability in every API: at most 64 letters, digits, `_` and `-`.

    `com.acme/refund` becomes `com_acme__refund`, `com.acme/gists/create` becomes `com_acme__gists___create`, which
    `id_of` reverses. An id that does not fit is shortened to its name and 64 bits of its hash.
    """
    namespace, name = parts(id)
    readable = f"{namespace.replace('.', '_')}__{name.replace('/', _SLASH)}"
    if len(readable) <= MAX_NAME and _VALID_NAME.fullmatch(readable) and id_of(readable) == id:
        return readable
    digest = hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    kept = _INVALID_CHARACTERS.sub("_", name).strip("_-")[: MAX_NAME - _DIGEST - 1].strip("_-")
    return f"{kept or 'capability'}-{digest}"


def id_of(tool_name: str) -> Id | None:
    """The id in a tool name; None if the name holds only its hash."""
    namespace, separator, name = tool_name.partition("__")
    return Id(f"{namespace.replace('_', '.')}/{name.replace(_SLASH, '/')}") if separator and name else None


def _description(profile: Profile, kind: Kind) -> str:
    source = profile.source or SourceText()
    text = source.description or profile.enrichment.summary or split_identifier(profile.name) or profile.name
    marks = [kind.value] if kind is not Kind.TOOL else []
    marks += ["deprecated"] if profile.lifecycle is Lifecycle.DEPRECATED else []
    shown = visible(text) or kind.value  # of only hidden characters, nothing remains
    return clip(f"({', '.join(marks)}) {shown}" if marks else shown, _MAX_DESCRIPTION)


def _schema(text: str) -> dict[str, Any] | None:
    """The owner's schema if it describes an object, without invalid entries, which would break a whole list."""
    written = remove_hidden(json.loads(text)) if text else None
    if not isinstance(written, dict) or "object" not in _list(written.get("type", "object")):
        return None
    schema = {key: value for key, value in written.items() if key not in ("type", "properties", "required", "$schema")}
    required = list(dict.fromkeys(_list(written.get("required"), of=str)))
    return {
        **({"$schema": written["$schema"]} if isinstance(written.get("$schema"), str) else {}),
        "type": "object",
        "properties": _properties(written.get("properties")),
        **({"required": required} if required else {}),
        **schema,
    }


def _properties(written: object) -> dict[str, Any]:
    """The valid property schemas. `true` accepts anything; `false` accepts nothing, so that property is dropped."""
    if not isinstance(written, dict):
        return {}
    return {name: schema or {} for name, schema in written.items() if isinstance(schema, dict)} | {
        name: {} for name, schema in written.items() if schema is True
    }


def _any_of(schemas: list[Any]) -> Any:
    """One schema that accepts what any of these accepts."""
    different = [schema for position, schema in enumerate(schemas) if schema not in schemas[:position]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _list(value: object, *, of: type = object) -> list[Any]:
    """The members of this type in a list, or in a list of this one value."""
    members = value if isinstance(value, list) else [] if value is None else [value]
    return [member for member in members if isinstance(member, of)]
