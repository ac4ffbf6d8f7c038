"""The reference pages under docs/reference, generated from the code: settings, commands, API.

`python -m mats.local.reference` (`make docs`) writes them; a test fails when they are stale.
"""

import html
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

from mats.edge import openapi
from mats.local.cli.main import app
from mats.resources import REPOSITORY
from mats.settings import Settings

FOLDER = REPOSITORY / "docs" / "reference"
_NOTE = "<!-- Written by `make docs` from the code; change it there. -->"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        sys.stderr.write(f"docs/reference/{name}\n")


def pages() -> dict[str, str]:
    return {"settings.md": _settings(), "cli.md": _commands(), "api.md": _api(openapi.document())}


def _page(title: str, intro: str, parts: Iterator[str]) -> str:
    return "\n\n".join((_NOTE, f"# {title}", intro, *parts)) + "\n"


def _settings() -> str:
    rows = "\n".join(
        f"| `{setting.metadata['variable']}` | {_default(setting.default)} | {_cell(setting.metadata['help'])} |"
        for setting in fields(Settings)
    )
    intro = (
        "Every setting is an environment variable. Invalid values are rejected at the start, with every fault at once."
    )
    return _page("Settings", intro, iter([f"| variable | default | meaning |\n|---|---|---|\n{rows}"]))


def _default(value: object) -> str:
    if isinstance(value, bool):
        value = int(value)
    return f"`{value}`" if value not in (None, "", ()) else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _commands() -> str:
    """The page that typer generates, under our note."""
    command = get_command(app)
    generated = get_docs_for_click(obj=command, ctx=Context(command), name="mats", title="Commands")
    return f"{_NOTE}\n\n{html.unescape(generated).strip()}\n"


def _api(document: Mapping[str, Any]) -> str:
    intro = (
        "The same API answers locally and behind API Gateway; `/openapi.json` describes it for programs. Errors are "
        "`application/problem+json` (RFC 9457); `errors` names every invalid field."
    )
    calls = [
        _call(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = [_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return _page("API", intro, iter([*calls, "# Types", *schemas]))


def _call(path: str, method: str, operation: Mapping[str, Any]) -> str:
    parts = [f"## {method.upper()} {path}", operation.get("description") or f"{operation['summary']}."]
    body = operation.get("requestBody", {}).get("content", {})
    parts += [f"Body: {_kinds(body)}."] if body else []
    rows = [
        f"| `{p['name']}` | {p['in']} | {_cell(p.get('description', ''))} |" for p in operation.get("parameters", [])
    ]
    parts += ["| parameter | in | |\n|---|---|---|\n" + "\n".join(rows)] if rows else []
    answers = [
        f"| {status} | {_cell(answer['description'])} | {_kinds(answer.get('content', {}))} |"
        for status, answer in operation["responses"].items()
    ]
    return "\n\n".join([*parts, "| status | | answer |\n|---|---|---|\n" + "\n".join(answers)])


def _kinds(content: Mapping[str, Any]) -> str:
    return ", ".join(f"{_type(media.get('schema', {}))} as `{name}`" for name, media in content.items())


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        f"| `{field}`{'*' if field in required else ''} | {_type(about)} | {_cell(about.get('description', ''))} |"
        for field, about in schema.get("properties", {}).items()
    ]
    values = ", ".join(f"`{value}`" for value in schema.get("enum", ()))
    body = [schema.get("description", ""), f"One of {values}." if values else ""]
    table = "| field | type | |\n|---|---|---|\n" + "\n".join(rows) if rows else ""
    return "\n\n".join(part for part in (f"## {name}", *body, table) if part)


def _type(schema: Mapping[str, Any]) -> str:
    """The type of a JSON Schema in a few characters."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(_type(choice) for choice in choices)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"map to {_type(schema['additionalProperties'])}"
    return str(schema.get("type", schema.get("const", "any")))


if __name__ == "__main__":
    main()
