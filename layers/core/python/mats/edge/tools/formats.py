"""Capabilities as tools, and shortlists as ready-made tools for the APIs of models, within a token budget."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field

from mats.domain.capability.capability import Id, Kind, Lifecycle, parts
from mats.domain.profile.profile import Profile, SourceText
from mats.domain.prompts.rerank_prompt import tokens
from mats.domain.protocols.catalogue import Invocation, from_text
from mats.domain.protocols.descriptors import annotations_of
from mats.domain.search.shortlist import Shortlist
from mats.domain.search.verdict import Verdict
from mats.domain.text.fence import remove_hidden, spell_out, visible
from mats.domain.text.words import clip, split_identifier
from mats.edge.schema import Format, ResponseModel
from mats.edge.tools.json_schema import drop_invalid_keywords, resolve_reference, shorten_descriptions

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


class LeftOut(ResponseModel):
    """A result that is not among the tools."""

    id: str
    reason: Literal["token_budget", "less_relevant", "suspicious", "property_names"] = Field(
        description="`less_relevant`: it might fit, but is far less relevant than the first, or less than one that did "
        "not fit. `suspicious`: what its owner wrote seems meant to steer a model, these tools go to one unread, and "
        "operators neither trust nor verified the owner. "
        "`property_names`: it requires an input whose name Claude refuses, and all other tools with it."
    )
    tokens: int = Field(description="Its size in tokens, estimated.")


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
        description="The id of the capability behind each tool's name, best first after those that operators pinned; "
        "also of `known` ones."
    )
    invocations: dict[str, Invocation] = Field(
        default={},
        description="By a tool's name, how the capability is called and where each property of the input goes. Tools "
        "whose owner gave no way to call them are not here.",
    )
    left_out: list[LeftOut]
    shortened: list[str] = Field(
        default=[], description="The ids of tools whose inputs are described in fewer words, to fit the budget."
    )
    tokens: int = Field(
        description="The size of the tools in tokens, without `known` ones, estimated: within a fifth for English."
    )

    @classmethod
    def of(
        cls,
        shortlist: Shortlist,
        format: Format,
        token_budget: int | None,
        *,
        pinned: Sequence[Profile] = (),
        known: Collection[str] | None = None,
        trusts: Callable[[Profile], bool] = lambda profile: False,
    ) -> Self:
        """The tools of a shortlist behind those that operators pinned.

        With `known`, names or ids of tools that the caller has, only others are defined, in order of name. What is
        suspicious is left out, unless operators trust its owner.
        """
        results = () if shortlist.verdict is Verdict.NONE else shortlist.results
        fitted = _Fitted(format, token_budget, frozenset(known or ()), for_parts=bool(shortlist.parts), trusts=trusts)
        for profile in pinned:
            fitted.add(profile)
        always = {profile.id for profile in pinned}
        for result in results:
            if (profile := result.candidate.profile).id not in always:
                fitted.add(profile, result.relevance)
        kept = fitted.kept
        new = [tool for tool in kept if not fitted.knows(tool)]
        new = new if known is None else sorted(new, key=lambda tool: tool.name)
        return cls.from_values(
            shortlist,
            fitted,
            output=_output(kept if format is _DEFERRED else new, format),
            definitions=[_define(tool, format) for tool in new] if format is _DEFERRED else None,
            names={tool.name: spell_out(tool.id) for tool in kept},
            invocations={tool.name: tool.invocation for tool in kept if tool.invocation},
        )


def tool_definition(profile: Profile, format: Format) -> dict[str, Any] | None:
    """The definition of one capability as a tool; None if an answer in this format would leave it out."""
    tool = tool_of(profile)
    return None if _reason_to_leave_out(profile, tool, format) else _define(tool, format)


_OF_UPPER_BOUND = 0.7  # Share of the upper bound of tokens that tokenizers make of a tool's JSON: docs/decisions/0007


def estimated_tokens(value: Any) -> int:
    """An estimate of the tokens of a value's JSON, for English within a fifth of what tokenizers make of it."""
    return math.ceil(_OF_UPPER_BOUND * tokens(json.dumps(value, ensure_ascii=False)))


_DEFERRED = Format.CLAUDE_TOOL_REFERENCE  # Defines its tools apart from the output
_PLAIN = (Format.BEDROCK_TOOL_CONFIG, Format.CLAUDE_TOOL_REFERENCE)  # Their APIs take plain schemas alone


def _tokens(tool: ToolDefinition, format: Format) -> int:
    """The tokens of a tool: its output, and its definition if that is apart."""
    apart = estimated_tokens([_define(tool, format)]) if format is _DEFERRED else 0
    return estimated_tokens(_output([tool], format)) + apart


_SHORTER = (60, 0)  # Characters to which descriptions of inputs are shortened, one after the other, until a tool fits
_FAR_LESS, _NEARLY = 0.5, 0.9
"""Shares of a relevance below which a result is far less relevant, or not nearly as relevant."""


@dataclass(slots=True)
class _Fitted:
    """The tools that fit a budget, best first, and what was left out; a worse tool never takes a better one's room."""

    format: Format
    budget: int | None
    known: frozenset[str] = frozenset()  # Tools that take no room
    trusts: Callable[[Profile], bool] = lambda profile: False
    for_parts: bool = False  # The results serve different parts, so their relevance is not compared
    kept: list[ToolDefinition] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)
    tokens: int = 0
    _least: float = 0.0  # The relevance below which a result is left out

    def knows(self, tool: ToolDefinition) -> bool:
        return not self.known.isdisjoint((tool.name, tool.id))

    def add(self, profile: Profile, relevance: float | None = None) -> None:
        """Take in the next tool, with shorter descriptions of its inputs if it does not fit otherwise.

        Without a relevance it is not compared with others.
        """
        whole, budget = tool_of(profile), self.budget
        reason: Any = _reason_to_leave_out(profile, whole, self.format, trusted=self.trusts(profile))
        if reason is None and self.knows(whole):
            self.kept.append(whole)
            return
        compared = budget is not None and not self.for_parts and relevance is not None
        relevance = relevance or 0.0
        if reason is None and compared and relevance < self._least:
            reason = "less_relevant"
        if reason is None:
            shorter = (replace(whole, schema=shorten_descriptions(whole.schema, most)) for most in _SHORTER)
            for tool in (whole, *shorter) if budget is not None else (whole,):
                alone = _tokens(tool, self.format)
                if budget is None or self.tokens + alone <= budget:
                    self.kept.append(tool)
                    self.tokens += alone
                    self.shortened += [spell_out(tool.id)] if tool is not whole else []
                    self._least = max(self._least, _FAR_LESS * relevance)
                    return
            # what no budget of this size could hold must not empty the answer
            share = _NEARLY if alone <= (budget or 0) else _FAR_LESS
            reason, self._least = "token_budget", max(self._least, share * relevance)
        self.left_out.append(LeftOut(id=spell_out(whole.id), reason=reason, tokens=_tokens(whole, self.format)))


def _reason_to_leave_out(
    profile: Profile, tool: ToolDefinition, format: Format, *, trusted: bool = False
) -> Literal["suspicious", "property_names"] | None:
    if profile.suspicious and not trusted:
        return "suspicious"
    return "property_names" if format in _PLAIN and tool.plain_schema is None else None


def _define(tool: ToolDefinition, format: Format) -> dict[str, Any]:
    named = {"name": tool.name, "description": tool.description}
    match format:
        case Format.MCP_TOOLS:
            titled = {"name": tool.name, "title": tool.title, **named, "inputSchema": tool.schema}
            annotations = {"annotations": tool.annotations} if tool.annotations else {}
            return {**titled, **annotations, "_meta": {"mats/id": spell_out(tool.id), "mats/kind": tool.kind}}
        case Format.BEDROCK_TOOL_CONFIG:
            return {"toolSpec": {**named, "inputSchema": {"json": tool.plain_schema}}}
        case Format.CLAUDE_TOOL_REFERENCE:
            return {**named, "input_schema": tool.plain_schema, "defer_loading": True}
        case Format.OPENAI_TOOLS:
            return {"type": "function", "function": {**named, "parameters": tool.flat_schema}}


def _output(tools: Sequence[ToolDefinition], format: Format) -> list[dict[str, Any]] | dict[str, Any] | None:
    if format is _DEFERRED:
        return [{"type": "tool_reference", "tool_name": tool.name} for tool in tools]
    defined = [_define(tool, format) for tool in tools]
    if format is Format.BEDROCK_TOOL_CONFIG:
        return {"tools": defined} if tools else None
    return defined
