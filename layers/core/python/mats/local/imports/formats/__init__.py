"""The formats of existing descriptions: each a module of pure functions over decoded values."""

from collections.abc import Iterator

from mats.local.imports.formats import (
    a2a,
    ard,
    bedrock,
    mcp_config,
    mcp_server,
    mcp_tools,
    openai_tools,
    openapi,
    registrations,
    skill,
)
from mats.local.imports.formats.mapping import FormatMapper, ItemDraft, MappedValue, Source, rejection
from mats.local.imports.formats.values import Json

__all__ = ["FORMATS", "FormatMapper", "ItemDraft", "Json", "MappedValue", "Source", "detect_format", "map_value"]

FORMATS: tuple[FormatMapper, ...] = (
    registrations, skill, openapi, mcp_server, mcp_config, ard, a2a, openai_tools, mcp_tools, bedrock,
)  # fmt: skip
"""In the order of detection: the most specific first."""
KNOWN = (
    "a registration, an MCP server.json, tools/list result or `mcpServers` file, an A2A agent card, an ARD "
    "catalog, an OpenAPI 3 or Swagger 2 document, a tool list of OpenAI or Anthropic, a SKILL.md or a list of "
    "Bedrock's models"
)


def detect_format(value: Json) -> FormatMapper | None:
    """The first format that accepts a value."""
    return next((format for format in FORMATS if format.detect(value)), None)


def map_value(value: Json, source: Source, *, is_line: bool = False) -> Iterator[MappedValue]:
    """The registrations in a value, with faults and notes. A line of no known format is parsed as a registration."""
    format = detect_format(value)
    if is_line and (format is None or format is registrations):
        yield registrations.map_row("", value, source)
    elif format is None:
        yield rejection("", f"is of no known format: expected {KNOWN}")
    else:
        yield from format.map_value(value, source)
