"""Tool lists of models' APIs: OpenAI's, Anthropic's, Bedrock's `toolConfig` and Gemini's; one tool each."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.protocols.namespaces import namespace_of_url
from mats.domain.protocols.protocol import Format, ItemDraft, MappedValue, Source, map_each, remark
from mats.domain.protocols.values import Json, mapping_at, objects, text_at, value_at

_NAME = "openai-tool"
_LISTS = (("tools",), ("toolConfig", "tools"), ("config", "tools"), ("functions",))
_GROUPS = ("functionDeclarations", "function_declarations")  # Gemini's lists within the list
_SCHEMAS = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema")
_VERSIONED = re.compile(r"\w+_20\d{6}")  # What Anthropic builds in: `web_search_20250305`
_GEMINI_TYPES = frozenset("STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL".split())
_PROBED = 10


def _tools_in(value: Json) -> tuple[str, Json]:
    """The place of a list of tools, and the list without groups; a single tool is a list of one."""
    found = ((".".join(path), tools) for path in _LISTS if isinstance(tools := value_at(value, *path), list))
    where, tools = next(found, ("", value))
    return where, [one for each in (tools if isinstance(tools, list) else [tools]) for one in _ungroup(each)]


def _ungroup(tool: Json) -> list[Json]:
    group = next((objects(value_at(tool, key)) for key in _GROUPS if value_at(tool, key)), None)
    return [tool] if group is None else [{"type": "function", **one} for one in group]


def _is_tool_list(value: Json) -> bool:
    """True if a value is a function, a list that has one among its first entries, or a request with such a list."""
    return any(
        _VERSIONED.fullmatch(text_at(each, "type"))
        or (_function(each) and not each.keys().isdisjoint(("type", "toolSpec", "parameters")))
        for each in objects(_tools_in(value)[1])[:_PROBED]
    )


def _function(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """The function that a tool declares; None if the tool is built into an API."""
    inner = mapping_at(tool, "toolSpec") or mapping_at(tool, "function") or tool
    if not isinstance(inner.get("name"), str) or tool.get("type", "function") not in ("function", "custom"):
        return None
    return {key: each for key, each in inner.items() if key != "type"}


def _registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """Each tool by its place in the list."""
    return map_each(*_tools_in(value), source, _tool, what="tools")


def _tool(where: str, tool: Mapping[str, Any], source: Source) -> MappedValue:
    if (function := _function(tool)) is None:
        label = text_at(tool, "type") or next(iter(tool), "")
        return remark(where, "type", f"{label[:80]!r} is built into an API and no function; skipped")
    draft = ItemDraft.create(where, "tool", source.namespace or namespace_of_url(source.url), function, format=_NAME)
    draft.move_text("name")
    draft.move_text("description")
    if (schema := draft.move_schema(_SCHEMAS)) is not None:
        stated = schema.get("json", schema) if "toolSpec" in tool else schema
        plain = _plain_schema(_properties_of(stated) if _are_properties(stated) else stated)
        draft.item["input_schema"] = plain or {"type": "object"}
    return draft.finish()


def _are_properties(schema: Json) -> bool:
    """True for parameters by name, as functions of Bedrock's agents have them in place of a schema."""
    return isinstance(schema, Mapping) and bool(schema) and all(text_at(each, "type") for each in schema.values())


def _properties_of(parameters: Mapping[str, Any]) -> Json:
    properties = {name: {k: v for k, v in each.items() if k != "required"} for name, each in parameters.items()}
    required = [name for name, each in parameters.items() if each.get("required") is True]
    return {"type": "object", "properties": properties, "required": required}


def _plain_schema(schema: Json) -> Json:
    """A schema with the names of types as JSON Schema has them, where Gemini's API has `STRING`."""
    if isinstance(schema, list):
        return [_plain_schema(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    is_gemini = str(schema.get("type")) in _GEMINI_TYPES
    plain = {key: _plain_schema(each) for key, each in schema.items()}
    return {**plain, "type": plain["type"].lower()} if is_gemini else plain


FORMAT = Format(_NAME, "a tool list of OpenAI, Anthropic, Bedrock or Gemini", 70, _is_tool_list, _registrations)
