"""Capabilities as tools, and shortlists as ready-made tools for the APIs of models."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field

from mats.domain.capability.capability import Id, Kind, Lifecycle, parts
from mats.domain.capability.json_schema import drop_invalid_keywords, resolve_reference
from mats.domain.profile.profile import Profile, SourceText
from mats.domain.protocols.catalogue import Invocation, from_text
from mats.domain.protocols.descriptors import annotations_of
from mats.domain.protocols.openapi import HttpCall, to_call_schema
from mats.domain.search.shortlist import Shortlist, quote_id
from mats.domain.search.verdict import Verdict
from mats.domain.text.fence import remove_hidden, spell_out, visible
from mats.domain.text.words import clip, split_identifier
from mats.edge.schema import Format, ResponseModel, Withheld

MAX_NAME = 64
_MAX_DESCRIPTION = 1_024  # Characters; the smallest limit of the supported APIs
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
    annotations: Mapping[str, bool] = field(default_factory=dict)  # What its owner says of its effects, in MCP's words

    @cached_property
    def valid_schema(self) -> dict[str, Any]:
        """The schema without what is not JSON Schema 2020-12, which would break a whole list of tools."""
        return drop_invalid_keywords(self.schema)

    @cached_property
    def flat_schema(self) -> dict[str, Any]:
        """The schema for APIs that take no alternatives at its top: the properties of all, none of them required.

        It accepts everything that the original accepts.
        """
        whole = self.valid_schema
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


def tool_of(profile: Profile, *, stands_in: bool = False) -> ToolDefinition:
    """The tool definition of a capability; `stands_in`: what matches better is withheld.

    Without a schema, a tool takes anything, an agent or a model takes a message. A skill takes nothing: calling it asks
    for its instructions.
    """
    kind, invocation = profile.indexed_kind, from_text(profile.invocation)
    schema = _schema(profile.input_schema) or _DEFAULT_SCHEMAS.get(kind) or _NO_PROPERTIES
    return ToolDefinition(
        id=profile.id,
        kind=kind,
        name=tool_name(profile.id),
        title=visible(profile.name),
        description=_description(profile, kind, stands_in=stands_in),
        schema=to_call_schema(invocation, schema) if isinstance(invocation, HttpCall) else schema,
        invocation=invocation,
        annotations=annotations_of(profile.effects),
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


def _description(profile: Profile, kind: Kind, *, stands_in: bool) -> str:
    source = profile.source or SourceText()
    text = source.description or profile.enrichment.summary or split_identifier(profile.name) or profile.name
    marks = [kind.value] if kind is not Kind.TOOL else []
    marks += ["not the best match, which is withheld"] if stands_in else []
    marks += ["deprecated"] if profile.lifecycle is Lifecycle.DEPRECATED else []
    shown = visible(text) or kind.value  # of only hidden characters, nothing remains
    return clip(f"({', '.join(marks)}) {shown}" if marks else shown, _MAX_DESCRIPTION)


def _schema(text: str) -> dict[str, Any] | None:
    """The owner's schema if it describes an object."""
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


class LeftOut(ResponseModel):
    """A result that is not among the tools."""

    id: str
    reason: Literal["suspicious", "property_names"] = Field(
        description="`suspicious`: it is `withheld`. `property_names`: it requires an input whose "
        "name Claude refuses, and all other tools with it."
    )


class ReadyMade(ResponseModel):
    """A shortlist as tools, best first."""

    query_id: str
    verdict: Verdict
    degraded: list[str]
    without: list[str] = Field(default=[], description="Parts that are not configured or switched off: llm, neural.")
    notes: list[str] = Field(default=[], description="What limits this answer, such as the language of the query.")
    format: Format
    output: list[dict[str, Any]] | dict[str, Any] | None = Field(
        description="To be passed on as it is. `mcp_tools`: MCP tools. `bedrock_tool_config`: the `toolConfig` of "
        "Converse, or null where there is no tool, because Converse takes no empty one. `claude_tool_reference`: the "
        "`content` of a tool result. `openai_tools`: the `tools` of Chat Completions."
    )
    definitions: list[dict[str, Any]] | None = Field(
        default=None,
        description="With `claude_tool_reference`: what is referred to, for the request's `tools`; to be deferred.",
    )
    names: dict[str, str] = Field(
        description="The id of the capability behind each tool's name, best first; also of `known` ones."
    )
    invocations: dict[str, Invocation] = Field(
        default={},
        description="By a tool's name, how the capability is called and where each property of the input goes. Tools "
        "whose owner gave no way to call them are not here.",
    )
    left_out: list[LeftOut]
    withheld: list[Withheld] = Field(
        default=[],
        description="What its owner wrote is on `hold`, as if meant to steer a model, and operators neither trust nor "
        "verified the owner; or it holds `hidden` text. If the best result is withheld, each tool that stands in for "
        "it says so in its description.",
    )

    @classmethod
    def of(cls, shortlist: Shortlist, format: Format, *, known: Collection[str] | None = None) -> Self:
        """The tools of a shortlist.

        With `known`, names or ids of tools that the caller has, only others are defined, in order of name.
        """
        target = _TARGETS[format]
        results = () if shortlist.verdict is Verdict.NONE else shortlist.results
        profiles = [result.candidate.profile for result in results]
        lacks_best = bool(profiles) and bool(profiles[0].withheld)
        kept, left_out = list[ToolDefinition](), list[LeftOut]()
        for profile in profiles:
            tool = tool_of(profile, stands_in=lacks_best)
            if profile.withheld:
                left_out.append(LeftOut(id=spell_out(tool.id), reason="suspicious"))
            elif target.is_plain and tool.plain_schema is None:
                left_out.append(LeftOut(id=spell_out(tool.id), reason="property_names"))
            else:
                kept.append(tool)
        new = [tool for tool in kept if not {tool.name, tool.id}.intersection(known or ())]
        new = new if known is None else sorted(new, key=lambda tool: tool.name)
        defined = [target.define(tool) for tool in new]
        return cls.from_values(
            shortlist,
            format=format,
            notes=[*shortlist.notes, *_notes_on(kept if target.is_plain else ())],
            output=[target.refer(tool) for tool in kept] if target.refer else target.wrap(defined),
            definitions=defined if target.refer else None,
            names={tool.name: spell_out(tool.id) for tool in kept},
            invocations={tool.name: tool.invocation for tool in kept if tool.invocation},
            left_out=left_out,
            withheld=[Withheld.of(profile) for profile in profiles if profile.withheld],
        )


def _notes_on(tools: Iterable[ToolDefinition]) -> Iterator[str]:
    """A note on each tool whose plain schema lacks inputs."""
    for tool in tools:
        plain = (tool.plain_schema or _NO_PROPERTIES)["properties"]
        if lacking := [name for name in tool.flat_schema["properties"] if name not in plain]:
            yield f"{quote_id(tool.id)} lacks optional inputs, whose names that API rejects: {quote_id(Id(lacking[0]))}"


class _Target(NamedTuple):
    """How an API takes tools."""

    define: Callable[[ToolDefinition], dict[str, Any]]
    is_plain: bool = False  # It takes plain schemas alone
    refer: Callable[[ToolDefinition], dict[str, Any]] | None = None  # If it takes definitions apart from the output
    wrap: Callable[[list[dict[str, Any]]], Any] = lambda defined: defined


def _mcp_tool(tool: ToolDefinition) -> dict[str, Any]:
    named = {"name": tool.name, "title": tool.title, "description": tool.description, "inputSchema": tool.valid_schema}
    annotations = {"annotations": tool.annotations} if tool.annotations else {}
    return {**named, **annotations, "_meta": {"mats/id": spell_out(tool.id), "mats/kind": tool.kind}}


def _definition(tool: ToolDefinition, **more: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, **more}


_TARGETS: Mapping[Format, _Target] = {
    Format.MCP_TOOLS: _Target(_mcp_tool),
    Format.BEDROCK_TOOL_CONFIG: _Target(
        lambda tool: {"toolSpec": _definition(tool, inputSchema={"json": tool.plain_schema})},
        is_plain=True,
        wrap=lambda defined: {"tools": defined} if defined else None,
    ),
    Format.CLAUDE_TOOL_REFERENCE: _Target(
        lambda tool: _definition(tool, input_schema=tool.plain_schema, defer_loading=True),
        is_plain=True,
        refer=lambda tool: {"type": "tool_reference", "tool_name": tool.name},
    ),
    Format.OPENAI_TOOLS: _Target(
        lambda tool: {"type": "function", "function": _definition(tool, parameters=tool.flat_schema)},
    ),
}
