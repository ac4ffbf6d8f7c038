"""The formats that owners have already: each a module of pure functions over decoded values."""

from collections.abc import Iterator

from mats.local.imports.formats import a2a, bedrock, mcp_server, mcp_tools, openapi, registrations, skill
from mats.local.imports.formats.mapped import Draft, Format, Json, Mapped, Source, refused

__all__ = ["FORMATS", "Draft", "Format", "Json", "Mapped", "Source", "detected", "mapped"]

FORMATS: tuple[Format, ...] = (registrations, skill, openapi, mcp_server, a2a, mcp_tools, bedrock)
"""In the order they are asked; what is told apart by a word of its own comes first."""
KNOWN = (
    "a registration, an MCP server.json or tools/list result, an A2A agent card, an OpenAPI 3 document, a SKILL.md "
    "or what Bedrock lists"
)


def detected(value: Json) -> Format | None:
    """The first format that takes a value for its own."""
    return next((format for format in FORMATS if format.detect(value)), None)


def mapped(value: Json, source: Source) -> Iterator[Mapped]:
    """What a document holds; of one that no format knows, that."""
    format = detected(value)
    if format is None:
        yield refused("", f"is none of what can be imported: {KNOWN}")
    else:
        yield from format.mapped(value, source)
