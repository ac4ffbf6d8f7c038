"""Tool lists of OpenAI's APIs: functions as Chat Completions has them, and as Responses has them; one tool each."""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.errors import Fault
from mats.domain.protocols.protocol import (
    Format,
    ItemDraft,
    Json,
    MappedValue,
    Source,
    map_each,
    namespace_of_url,
    objects,
    text_at,
    value_at,
)

_NAME = "openai-tool"
_PROBED = 10


def _is_tool_list(value: Json) -> bool:
    """True if a value is a function, a list that has one among its first entries, or a request with such `tools`."""
    tools = value_at(value, "tools") or value
    found = [tools] if isinstance(tools, Mapping) else list(objects(tools)[:_PROBED])
    return any(map(_is_function, found))


def _is_function(value: Mapping[str, Any]) -> bool:
    is_named = isinstance(value_at(value, "function", "name"), str) or (
        isinstance(value.get("name"), str) and ("parameters" in value or "strict" in value)
    )
    return value.get("type") == "function" and is_named


def _registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """Each tool by its place in the list."""
    if isinstance(tools := value_at(value, "tools"), list):
        yield from map_each("tools", tools, source, _tool, what="tools")
    else:
        yield from map_each("", value, source, _tool, what="tools")


def _tool(where: str, tool: Mapping[str, Any], source: Source) -> MappedValue:
    if not _is_function(tool):
        note = Fault("type", f"{text_at(tool, 'type')[:80]!r} is built into OpenAI's API and no function; skipped")
        return MappedValue(where, notes=(note,))
    function = value_at(tool, "function")
    function = function if isinstance(function, Mapping) else {key: tool[key] for key in tool if key != "type"}
    draft = ItemDraft.create(where, "tool", source.namespace or namespace_of_url(source.url), function, format=_NAME)
    draft.move_text("name")
    draft.move_text("description")
    if isinstance(parameters := draft.rest.get("parameters"), Mapping):
        draft.item["input_schema"] = draft.rest.pop("parameters") if parameters else {"type": "object"}
    elif parameters is not None:
        draft.add_note("input_schema", "`parameters` is not an object; it stays in the descriptor")
    return draft.finish()


FORMAT = Format(_NAME, "a tool list of OpenAI or Anthropic", 70, _is_tool_list, _registrations)
