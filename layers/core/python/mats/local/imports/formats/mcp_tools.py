"""Results of MCP's `tools/list`: the bare result, the JSON-RPC response, pages of them, or the tools alone."""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.errors import Fault
from mats.domain.protocols.descriptors import MCP, SERVER
from mats.local.imports.formats import naming
from mats.local.imports.formats.mapping import MAX_ENDPOINT, ItemDraft, MappedValue, Source, map_each, rejection
from mats.local.imports.formats.values import Json, first_of, objects, text_at, value_at

NAME = "mcp-tools"

_SCHEMAS = ("inputSchema", "input_schema")


def detect(value: Json) -> bool:
    """A result or response with `tools`, or a list that begins with a tool or a response."""
    first = first_of(value)
    return _is_page(first) or (isinstance(value, list) and _is_tool(first))


def _is_page(value: object) -> bool:
    """Whether a value is a page: an empty list of tools is one, an object with other things in `tools` is not."""
    answer = _result(value)
    tools = answer.get("tools")
    if not isinstance(tools, list):
        return False
    response = isinstance(value, Mapping) and "jsonrpc" in value
    empty = not tools and answer.keys() <= {"tools", "nextCursor", "_meta"}
    return response or empty or any(map(_is_tool, tools))


def _is_tool(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str) and any(key in value for key in _SCHEMAS)


def _result(value: object) -> Mapping[str, Any]:
    """The result of a response, or the result itself."""
    if not isinstance(value, Mapping):
        return {}
    result = value.get("result")
    return result if isinstance(result, Mapping) else value


def map_value(value: Json, source: Source) -> Iterator[MappedValue]:
    """Each tool by its place; a last page with a cursor has a note."""
    if isinstance(value, list) and value and not _is_page(value[0]):
        yield from map_each("", value, source, _tool, what="tools")
    elif isinstance(value, list):
        for position, page in enumerate(value):
            yield from _page(f"[{position}].", page, source, last=position == len(value) - 1)
    else:
        yield from _page("", value, source, last=True)


def _page(where: str, page: object, source: Source, *, last: bool) -> Iterator[MappedValue]:
    if isinstance(error := value_at(page, "error"), Mapping):
        yield rejection(f"{where}error", f"the server answered with an error: {text_at(error, 'message')[:200]!r}")
        return
    answer = _result(page)
    yield from map_each(f"{where}tools", answer.get("tools"), source, _tool, what="tools")
    if last and not where and answer.get("tools") == []:
        yield MappedValue("tools", notes=(Fault("tools", "the list is empty"),))
    if last and answer.get("nextCursor"):
        note = Fault("nextCursor", "the list has more pages; `mats import mcp` reads all of them")
        yield MappedValue(f"{where}nextCursor", notes=(note,))


def _tool(where: str, tool: Mapping[str, Any], source: Source) -> MappedValue:
    namespace = source.namespace or naming.namespace_of_url(source.server, source.url)
    draft = ItemDraft.create(where, "tool", namespace, tool, format="mcp-tool")
    draft.move_text("name")
    if not draft.move_text("description"):
        draft.set("description", text_at(tool, "title") or text_at(tool, "annotations", "title"))
    key = next((key for key in _SCHEMAS if tool.get(key) is not None), None)
    if key and isinstance(tool[key], Mapping):
        draft.item["input_schema"] = draft.rest.pop(key)
    elif key:
        draft.add_note("input_schema", f"`{key}` is not an object; it stays in the descriptor")
    draft.set("endpoint", source.server if len(source.server) <= MAX_ENDPOINT else "")
    if source.server_entry:
        draft.rest[SERVER] = dict(source.server_entry)
    draft.set_words("tags", [MCP])
    return draft.finish()


def merge_pages(pages: list[Mapping[str, Any]]) -> Json:
    """The pages of a live server as one document."""
    return {"tools": [tool for page in pages for tool in objects(page.get("tools"))]}
