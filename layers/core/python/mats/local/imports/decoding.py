"""Decode untrusted bytes of JSON, YAML, TOML or SKILL.md to a JSON value, within bounds.

PyYAML parses YAML: the YAML project maintains it, libyaml parses for it in C, and most environments have it already.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, NamedTuple

from mats.domain.capability.registration import depth_of
from mats.domain.errors import Fault, Invalid
from mats.domain.protocols import skill
from mats.domain.protocols.values import Json

MAX_BYTES = 20_000_000  # Size of a document; the largest published OpenAPI documents have 12 MB as JSON
MAX_YAML_BYTES = 8_000_000  # Parsing YAML takes some twenty times as long
_MAX_SETTINGS = 1_000_000  # Characters of TOML, and of JSON with comments: both are files of settings
_MAX_TOML_DOTS = 200  # In a line: parsing takes the square of the parts of a dotted key
_MAX_VALUES = 1_500_000
_MAX_DEPTH = 60  # Levels of nesting. An item may have 32, and a document has a few above its items.
_MAX_YAML_WEIGHT = 20_000_000  # Limit of a YAML document's approximate length as JSON, with its aliases expanded
_COLLECTION_WEIGHT = 4  # Characters of an object or a list besides its entries
_TOO_MANY = f"holds more than {_MAX_VALUES:,} values: split it"
_TOO_DEEP = f"is nested more than {_MAX_DEPTH} levels deep: nest it less"

_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_KEY = re.compile(r"""^["']?([A-Za-z][\w.-]*)["']?[ \t]*:(?!//)""", re.MULTILINE)
_ENTRY = re.compile(r"\n *- ")  # Of a list in YAML
_BLOCK = re.compile(r"^[|>][+-]?[0-9]?(?= |$) *")  # The sign before a text of several lines
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(r"[-+]?([0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30}(?=[eE]))([eE][-+]?[0-9]{1,3})?")
_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in "str int float bool null map seq timestamp".split()) | {"!"}
_TEXT_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp", "!")


class Undecodable(Invalid):
    """A document that is malformed or beyond the bounds."""

    def __init__(self, message: str) -> None:
        super().__init__([Fault("", message)])
        self.message = message


class TooLarge(Undecodable):
    """A document beyond the bounds, as opposed to a malformed one."""


def decode(content: bytes, *, name: str = "") -> Json:
    """The value of a document. The notation follows from its name, else from its text.

    Raises Undecodable: it is malformed or beyond the bounds.
    """
    if len(content) > MAX_BYTES:
        raise TooLarge(f"is larger than {MAX_BYTES:,} bytes: split it, or use JSON Lines")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Undecodable(f"is not UTF-8 text (byte {error.start + 1}): convert it to UTF-8") from error
    if not text.strip():
        raise Undecodable("is empty: export or download it again")
    lower = name.lower().removesuffix(".gz")
    if lower.endswith(".md"):
        is_skill = lower.endswith(skill.FILE.lower()) or skill.split(text)
        return _parse_skill(text) if is_skill else text  # which is of no known format
    if lower.endswith((".yaml", ".yml")):
        return parse_yaml(text)
    if lower.endswith(".toml"):
        return _parse_toml(text)
    start = text.lstrip()[:4]
    if start.startswith("---") and skill.split(text):
        return _parse_skill(text)
    if lower.endswith((".json", ".jsonc")) or start[:2] in ("//", "/*") or start[:1] in ("{", "[", ""):
        return _parse_json(text)
    return parse_yaml(text)


def _parse_toml(text: str) -> Json:
    """The value of a TOML text; dates are text."""
    if len(text) > _MAX_SETTINGS or max(line.count(".") for line in text.split("\n")) > _MAX_TOML_DOTS:
        raise Undecodable(
            f"is TOML of over {_MAX_SETTINGS:,} characters, or {_MAX_TOML_DOTS:,} dots in a line: use JSON"
        )
    try:
        return _parse_json(json.dumps(tomllib.loads(text), default=str))
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"cannot be read as TOML: {error}; correct it there") from error


_NOT_JSON = re.compile(
    r'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)|//[^\r\n]*+|/\*.*?(?:\*/|\Z)|,(?=(?:\s|//[^\r\n]*+|/\*.*?\*/)*+[\]}])', re.DOTALL
)
"""Texts, and what editors and MCP clients allow besides JSON: comments, and commas after last entries."""


def _blank(found: re.Match[str]) -> str:
    return found[1] or re.sub(r"[^\r\n]", " ", found[0])


def _parse_json(text: str) -> Json:
    """The value of a JSON text, in which keys are distinct."""
    if sum(text.count(mark) for mark in ",[{") > _MAX_VALUES:
        raise TooLarge(_TOO_MANY)
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        if len(text) <= _MAX_SETTINGS and (plain := _NOT_JSON.sub(_blank, text)) != text:
            return _parse_json(plain)
        raise Undecodable(
            f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}; correct it there"
        ) from error
    except ValueError as error:
        raise Undecodable("holds a number too long to read: shorten it") from error
    except RecursionError as error:
        raise TooLarge(_TOO_DEEP) from error
    if depth_of([value], _MAX_DEPTH) > _MAX_DEPTH:
        raise TooLarge(_TOO_DEEP)
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _key_twice(next(key for key, count in counts.items() if count > 1))
    return value


def _key_twice(key: str) -> Undecodable:
    return Undecodable(f"holds the key {key[:60]!r} twice in one object: leave one out")


def _no_number(text: str) -> None:
    raise Undecodable(f"holds {text}, which is not a JSON number: write a number or null")


def _parse_skill(text: str) -> Json:
    split = skill.split(text)
    if split is None:
        raise Undecodable("has no front matter: a SKILL.md begins with `key: value` lines between two lines of `---`")
    front, body = split
    try:
        if isinstance(parsed := parse_yaml(front) or {}, dict):
            return skill.to_value(parsed, body)
        raise Undecodable("has a front matter that is not `key: value` lines")
    except TooLarge:
        raise
    except Undecodable as error:
        if by_key := _parse_by_key(front.expandtabs(4)):
            return skill.to_value(by_key, body, wrong=error.message)
        raise


def _parse_by_key(text: str, *, is_nested: bool = False) -> dict[str, Json]:
    """The value of each key by itself, the last if it is repeated; what YAML refuses is text, in lists and below keys.

    Colons, tags, aliases and tabs that nobody meant as YAML are common, and no YAML library recovers from them.
    """
    _, *parts = _KEY.split(dedent(text))
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {key: _parse_entry(key, value, is_nested=is_nested) for key, value in pairs}


def _parse_entry(key: str, text: str, *, is_nested: bool) -> Json:
    with suppress(Undecodable):
        parsed = parse_yaml(f"{key}: {text}")
        if isinstance(parsed, dict) and parsed.keys() == {key}:
            return parsed[key]
    first, _, more = text.partition("\n")
    line = " ".join(line.strip() for line in text.splitlines() if not line.startswith("#")).strip()
    if not first.strip() and _KEY.match(dedent(more)) and not is_nested:
        return _parse_by_key(more, is_nested=True)
    if not first.strip() and line.startswith("- "):
        return list(map(_unquote, _ENTRY.split(f"\n{more}")[1:]))
    if listed := re.fullmatch(r"\[([^][]*)\]", line):
        return list(map(_unquote, listed[1].split(",")))
    return _unquote(_BLOCK.sub("", line))


def _unquote(text: str) -> str:
    text = " ".join(text.split())
    quoted = re.fullmatch(r"""(["'])(.*)\1""", text)
    return quoted[2] if quoted else text


def parse_yaml(text: str) -> Json:
    """The value of a YAML text with one document: keys are text and distinct, dates are text, tags make no objects."""
    if len(text) > MAX_YAML_BYTES:
        raise TooLarge(f"is YAML larger than {MAX_YAML_BYTES:,} bytes: convert it to JSON")
    if sum(text.count(mark) for mark in ",[{\n") > 2 * _MAX_VALUES:
        raise TooLarge(_TOO_MANY)
    import yaml  # noqa: PLC0415 - loads PyYAML only if needed
    from yaml.reader import ReaderError  # noqa: PLC0415 - as above

    try:
        return _build_value(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except ReaderError as error:
        raise Undecodable(f"holds a character that YAML forbids ({error.reason}): remove it") from error
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error)[:200]
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Undecodable(f"is not YAML: {problem}{where}; correct it there") from error


class _Node(NamedTuple):
    value: Json
    weight: int
    text: str | None = None  # A scalar as written


@dataclass(slots=True)
class _Collection:
    """A list or an object whose end has not been reached."""

    anchor: str
    value: list[Json] | dict[str, Json]
    weight: int = _COLLECTION_WEIGHT
    key: str | None = None  # Of an object: the key whose value comes next
    merged: list[Json] = field(default_factory=list)  # The values of `<<`

    def add(self, node: _Node) -> None:
        self.weight += node.weight
        if self.weight > _MAX_YAML_WEIGHT:
            raise TooLarge(f"has more than {_MAX_YAML_WEIGHT:,} characters with its aliases expanded: write fewer")
        if isinstance(self.value, list):
            self.value.append(node.value)
        elif self.key is None:
            if node.text is None:
                raise Undecodable("has a list or an object as a key: write text")
            self.key = node.text
        else:
            key, self.key = self.key, None
            if key == "<<" and node.text is None:
                self.merged += node.value if isinstance(node.value, list) else [node.value]
            elif key in self.value:
                raise _key_twice(key)
            else:
                is_number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
                # `version` is text as written: 1.10 is not 1.1.
                self.value[key] = node.text if key == "version" and is_number else node.value

    def finish(self) -> _Node:
        """The value, with the merged entries whose keys it lacks."""
        for other in self.merged:
            if isinstance(other, dict) and isinstance(self.value, dict):
                self.value |= {key: value for key, value in other.items() if key not in self.value}
        return _Node(self.value, self.weight)


def _build_value(events: Iterable[Any]) -> Json:
    """The value of a stream of YAML events. Aliases share their value, and are weighed as if they were expanded."""
    documents: list[Json] = []
    open_ones, complete, count = [_Collection("", documents)], dict[str, _Node](), 0
    for event in events:
        kind, anchor, tag = type(event).__name__, getattr(event, "anchor", None) or "", getattr(event, "tag", None)
        if tag is not None and tag not in _TAGS:
            raise Undecodable(f"holds the tag {tag[:60]!r}: only plain values are allowed")
        if kind == "ScalarEvent":  # the most frequent one
            is_text = event.style or tag in _TEXT_TAGS
            node = _Node(event.value if is_text else _core_value(event.value), len(event.value) + 1, event.value)
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            anchor, node = open_ones[-1].anchor, open_ones.pop().finish()
        elif kind in ("SequenceStartEvent", "MappingStartEvent"):
            if len(open_ones) > _MAX_DEPTH:
                raise TooLarge(_TOO_DEEP)
            open_ones.append(_Collection(anchor, [] if kind == "SequenceStartEvent" else {}))
            continue
        elif kind == "AliasEvent":
            if anchor not in complete:
                raise Undecodable(f"refers to *{anchor[:60]} before it is complete: write out what it stands for")
            open_ones[-1].add(complete[anchor])
            continue
        elif kind == "DocumentStartEvent" and documents:
            raise Undecodable("holds several YAML documents: write each to its own file")
        else:
            continue
        count += 1 if node.text is not None else 2
        if count > 2 * _MAX_VALUES:
            raise TooLarge(_TOO_MANY)
        if anchor:
            complete[anchor] = node
        open_ones[-1].add(node)
    return documents[0] if documents else None


def _core_value(text: str) -> Json:
    """The value of a plain scalar in YAML 1.2's core schema; text if it is none of its constants and numbers."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] <= "9" and _INT.fullmatch(text):
        return int(text)
    return float(text) if text[0] <= "9" and _FLOAT.fullmatch(text) else text
