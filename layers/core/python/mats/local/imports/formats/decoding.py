"""Decode untrusted bytes of JSON, YAML or SKILL.md to a JSON value, within bounds."""

import json
from collections import Counter
from typing import Any

from mats.domain.errors import Fault, Invalid
from mats.local.imports.formats import skill
from mats.local.imports.formats.values import Json

MAX_BYTES = 20_000_000
"""Size of a document; the largest published OpenAPI documents have 12 MB as JSON."""
MAX_YAML_BYTES = 8_000_000
"""Parsing YAML takes some twenty times as long."""
MAX_VALUES = 1_500_000
MAX_DEPTH = 60
"""Levels of nesting. An item may have 32, and a document has a few above its items."""
TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"


class Undecodable(Invalid):
    """A document that is malformed or beyond the bounds."""

    def __init__(self, message: str) -> None:
        super().__init__([Fault("", message)])
        self.message = message


class YamlInvalid(Undecodable):
    """A text that is not YAML, as opposed to one beyond the bounds."""


def decode(content: bytes, *, name: str = "") -> Json:
    """The value of a document. The notation follows from its name, else from its text.

    Raises:
        Undecodable: it is malformed or beyond the bounds.
    """
    if len(content) > MAX_BYTES:
        raise Undecodable(f"is larger than {MAX_BYTES:,} bytes: split it, or use JSON Lines")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Undecodable(f"is not UTF-8 text (byte {error.start + 1})") from error
    lower = name.lower().removesuffix(".gz")
    if lower.endswith(".md"):
        return _skill(text)
    if lower.endswith((".yaml", ".yml")):
        return parse_yaml(text)
    start = text.lstrip()[:4]
    if start.startswith("---") and skill.split(text):
        return _skill(text)
    if lower.endswith(".json") or start[:1] in ("{", "[", ""):
        return parse_json(text)
    return parse_yaml(text)


def parse_json(text: str) -> Json:
    """The value of a JSON text, in which keys are distinct."""
    if sum(text.count(mark) for mark in ",[{") > MAX_VALUES:
        raise Undecodable(f"holds more than {MAX_VALUES:,} values")
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise Undecodable(f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except ValueError as error:
        raise Undecodable(f"cannot be read: {error}") from error
    except RecursionError as error:
        raise Undecodable(TOO_DEEP) from error
    _check_depth(value)
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise Undecodable(f"holds the key {twice[:60]!r} twice in one object")
    return value


def _no_number(text: str) -> None:
    raise Undecodable(f"holds {text}, which is not a JSON number")


def _check_depth(value: Json) -> None:
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise Undecodable(TOO_DEEP)
        children = [node.values() if isinstance(node, dict) else node for node in level]
        level = [entry for entries in children for entry in entries if isinstance(entry, dict | list)]


def _skill(text: str) -> Json:
    split = skill.split(text)
    if split is None:
        raise Undecodable("has no front matter: a SKILL.md begins with `key: value` lines between two lines of `---`")
    front, body = split
    try:
        parsed = parse_yaml(front)
    except YamlInvalid as error:
        return skill.to_value(skill.parse_by_line(front), body, wrong=error.message)
    return skill.to_value(parsed if parsed is not None else {}, body)


def parse_yaml(text: str) -> Json:
    """The value of a YAML text with one document, in which keys are distinct."""
    if len(text) > MAX_YAML_BYTES:
        raise Undecodable(f"is YAML larger than {MAX_YAML_BYTES:,} bytes; convert it to JSON")
    from mats.local.imports.formats.yaml_loader import load_yaml  # noqa: PLC0415 - loads PyYAML only if needed

    return load_yaml(text)
