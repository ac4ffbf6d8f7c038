"""A capability as a tool that a model may call, whatever API the model has."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mats.domain.capability import Id, Kind, Lifecycle, parts
from mats.domain.fence import visible
from mats.domain.profile import Profile, SourceText
from mats.domain.text import clip, split_identifier
from mats.edge.tools.json_schema import valid

LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1_024
"""Characters; the least of what the APIs take."""
_LEGAL = re.compile(r"[A-Za-z0-9_-]+")
_LEGAL_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What Claude takes for the name of a property at the top, on Bedrock, too; any other spoils the whole request."""
_ILLEGAL = re.compile(r"[^A-Za-z0-9-]+")
_DIGEST = 16
_EITHER = ("anyOf", "oneOf", "allOf")
_REFUSED_AT_THE_TOP = (*_EITHER, "$ref", "not", "enum", "const", "if", "then", "else")
_MOST_STEPS = 8
"""From one reference to the next; they may lead in a circle."""

_MESSAGE = {"type": "string", "description": "What to say to it, in full."}
_ASKED: Mapping[Kind, dict[str, Any]] = {
    kind: {"type": "object", "properties": {"message": _MESSAGE}, "required": ["message"]}
    for kind in (Kind.AGENT, Kind.MODEL)
}
"""Those that are spoken to, where they say nothing else of their input."""


@dataclass(frozen=True)
class Tool:
    """What a model is told of a capability. The name is legal everywhere and stands for the id alone."""

    id: Id
    kind: Kind
    name: str
    title: str
    description: str
    schema: dict[str, Any]

    @cached_property
    def flat_schema(self) -> dict[str, Any]:
        """The schema for those who take no alternatives at its top: all of their properties, none required more.

        It allows whatever the original allows, and breaks JSON Schema 2020-12 nowhere.
        """
        whole = valid(self.schema)
        flat = {key: value for key, value in whole.items() if key not in _REFUSED_AT_THE_TOP}
        offered: dict[str, list[Any]] = {}
        options = [option for word in _EITHER for option in _list(self.schema.get(word), of=dict)]
        for option in (whole, *map(valid, options)):
            for name, schema in _properties(_referred(option, whole).get("properties")).items():
                offered.setdefault(name, []).append(schema)
        merged = {name: _any_of(schemas) for name, schemas in offered.items()}
        return {**flat, "properties": {**merged, **whole["properties"]}}

    @cached_property
    def plain_schema(self) -> dict[str, Any] | None:
        """The flat schema without properties whose names not everybody takes; None where one of them is required."""
        properties = self.flat_schema["properties"]
        plain = {name: schema for name, schema in properties.items() if _LEGAL_PROPERTY.fullmatch(name)}
        lacking = properties.keys() - plain.keys()
        if not lacking.isdisjoint(self.flat_schema.get("required", ())):
            return None
        return {**self.flat_schema, "properties": plain} if lacking else self.flat_schema


def tool_of(profile: Profile) -> Tool:
    """The tool that a capability is to a model.

    A tool takes what its schema says, anything if it has none. An agent or a model without a schema takes a message.
    A skill takes nothing: to call it is to ask for its instructions.
    """
    if profile.kind is None:
        raise ValueError(f"{profile.id} is indexed without a kind")
    return Tool(
        id=profile.id,
        kind=profile.kind,
        name=tool_name(profile.id),
        title=visible(profile.name),
        description=_description(profile, profile.kind),
        schema=_schema(profile.input_schema) or _ASKED.get(profile.kind) or {"type": "object", "properties": {}},
    )


def tool_name(id: Id) -> str:
    """The one name of a capability that every API takes: letters, digits, `_` and `-`, at most 64.

    `com.acme/refund` is `com_acme__refund`, which `id_of` turns back. An id that does not fit keeps what it can of its
    last part, and 64 bits of its hash tell it from all others.
    """
    namespace, name = parts(id)
    spelt = f"{namespace.replace('.', '_')}__{name}"
    if len(spelt) <= LONGEST_NAME and _LEGAL.fullmatch(spelt) and id_of(spelt) == id:
        return spelt
    digest = hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    kept = _ILLEGAL.sub("_", name).strip("_-")[: LONGEST_NAME - _DIGEST - 1].strip("_-")
    return f"{kept or 'capability'}-{digest}"


def id_of(tool_name: str) -> Id | None:
    """The id behind a name of a tool; None where the name does not hold it."""
    namespace, separator, name = tool_name.partition("__")
    return Id(f"{namespace.replace('_', '.')}/{name}") if separator and name else None


def _description(profile: Profile, kind: Kind) -> str:
    source = profile.source or SourceText()
    said = source.description or profile.enrichment.summary or split_identifier(profile.name) or profile.name
    marks = [kind.value] if kind is not Kind.TOOL else []
    marks += ["deprecated"] if profile.lifecycle is Lifecycle.DEPRECATED else []
    shown = visible(said) or kind.value  # of a text of nothing but what nobody sees, nothing remains
    return clip(f"({', '.join(marks)}) {shown}" if marks else shown, _LONGEST_DESCRIPTION)


def _schema(text: str) -> dict[str, Any] | None:
    """A schema as its owner wrote it, so far as it is one of an object; one bad entry must not spoil a whole list."""
    written = json.loads(text) if text else None
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
    """What is a schema among these; `true` allows anything, `false` nothing, so that there is no such property."""
    if not isinstance(written, dict):
        return {}
    return {name: schema or {} for name, schema in written.items() if isinstance(schema, dict)} | {
        name: {} for name, schema in written.items() if schema is True
    }


def _referred(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """What a schema refers to within the whole; nothing if that is not there."""
    for _ in range(_MOST_STEPS):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        found: Any = whole
        for part in reference.removeprefix("#/").split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        schema = found if isinstance(found, dict) else {}
    return {}


def _any_of(schemas: list[Any]) -> Any:
    """One schema that allows what any of these does."""
    different = [schema for position, schema in enumerate(schemas) if schema not in schemas[:position]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _list(value: object, *, of: type = object) -> list[Any]:
    """The members of this type, of a list or of the one value there is."""
    members = value if isinstance(value, list) else [] if value is None else [value]
    return [member for member in members if isinstance(member, of)]
