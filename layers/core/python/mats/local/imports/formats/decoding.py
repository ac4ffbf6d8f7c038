"""Bytes to a JSON value, from JSON, YAML or SKILL.md, within bounds: nothing here trusts what it reads.

YAML is read as PyYAML's events, from which the value is built here: that way aliases are counted before they are
expanded, tags make no objects, keys are text and stand once, dates stay text as in JSON, and nothing recurses.
PyYAML, because the YAML project keeps it, libyaml reads for it in C, and most environments have it already; what
ruamel.yaml adds, comments that survive a round trip, nobody here needs.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mats.domain.errors import Fault, Invalid
from mats.local.imports.formats import skill
from mats.local.imports.formats.mapping import Json

MAX_BYTES = 20_000_000
"""A document; the largest published OpenAPI documents in JSON are of 12 MB."""
MAX_YAML_BYTES = 8_000_000
"""YAML takes some twenty times as long to read."""
MAX_VALUES = 1_500_000
MAX_DEPTH = 60
"""Levels; an item may have 32 and a document a few above its items."""
_MAX_YAML_WEIGHT = 20_000_000
"""Characters that a document comes to once its aliases are written out, in JSON, about."""
_VALUE_WEIGHT = 4
"""Characters that an object or a list takes besides what it holds: looking at one takes longer than at a letter."""

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE, _FALSE = frozenset(("true", "True", "TRUE")), frozenset(("false", "False", "FALSE"))
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(r"[-+]?([0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30}(?=[eE]))([eE][-+]?[0-9]{1,3})?")
_CORE = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(f"{_CORE}{name}" for name in "str int float bool null map seq timestamp".split()) | {"!"}


class Undecodable(Invalid):
    """A document that is not what it should be, or more than is read."""

    def __init__(self, message: str) -> None:
        super().__init__([Fault("", message)])
        self.message = message


def decode(content: bytes, *, name: str = "") -> Json:
    """The value of a document; its name says which notation it is in, and where it does not, its text does.

    Raises:
        Undecodable: it cannot be read, or is more than is read.
    """
    if len(content) > MAX_BYTES:
        raise Undecodable(f"is larger than {MAX_BYTES:,} bytes; a document is read as a whole, JSON Lines line by line")
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
    """The value of a JSON text, in which no key stands twice.

    Raises:
        Undecodable: as `decode`.
    """
    if sum(text.count(mark) for mark in ",[{") > MAX_VALUES:
        raise Undecodable(f"holds more than {MAX_VALUES:,} values")
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise Undecodable(f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except ValueError as error:
        raise Undecodable(f"cannot be read: {error}") from error
    except RecursionError as error:
        raise Undecodable(_TOO_DEEP) from error
    _check_depth(value)
    return value


_TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise Undecodable(f"holds the key {twice[:60]!r} twice in one object")
    return made


def _no_number(text: str) -> None:
    raise Undecodable(f"holds {text}, which is no number of JSON's")


def _check_depth(value: Json) -> None:
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise Undecodable(_TOO_DEEP)
        held = [node.values() if isinstance(node, dict) else node for node in level]
        level = [entry for entries in held for entry in entries if isinstance(entry, dict | list)]


def _skill(text: str) -> Json:
    split = skill.split(text)
    if split is None:
        raise Undecodable("has no front matter: a SKILL.md begins with lines of `key: value` between two of `---`")
    front, body = split
    try:
        read = parse_yaml(front)
    except _BadYaml as error:
        return skill.to_value(skill.parse_by_line(front), body, wrong=error.message)
    return skill.to_value(read if read is not None else {}, body)


class _BadYaml(Undecodable):
    """It breaks YAML's grammar, as opposed to our bounds."""


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come."""

    value: Any
    anchor: str | None
    weight: int = _VALUE_WEIGHT
    key: str | None = None
    merged: list[Any] = field(default_factory=list)


def parse_yaml(text: str) -> Json:
    """The value of a YAML text with one document, in which no key stands twice.

    Raises:
        Undecodable: as `decode`.
    """
    if len(text) > MAX_YAML_BYTES:
        raise Undecodable(f"is YAML larger than {MAX_YAML_BYTES:,} bytes; convert it to JSON")
    return _Builder().build(text)


class _Builder:
    """Builds a value of YAML's events."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._documents: list[Any] = []
        self._values = 0

    def build(self, text: str) -> Json:
        import yaml  # noqa: PLC0415 - for those who import YAML

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            for event in self._events(yaml.parse(text, Loader=loader)):
                self._take(event)
        except yaml.reader.ReaderError as error:
            raise Undecodable(f"holds a character that YAML forbids ({error.reason})") from error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise _BadYaml(f"is not YAML: {error.problem}{where}") from error
        except yaml.YAMLError as error:
            raise _BadYaml(f"is not YAML: {str(error)[:200]}") from error
        if len(self._documents) > 1:
            raise Undecodable("holds several YAML documents; give one a file")
        return self._documents[0] if self._documents else None

    def _events(self, events: Iterator[Any]) -> Iterator[Any]:
        """The events, as long as there are not too many."""
        for event in events:
            self._values += 1
            if self._values > 2 * MAX_VALUES:
                raise Undecodable(f"holds more than {MAX_VALUES:,} values")
            yield event

    def _take(self, event: Any) -> None:
        match type(event).__name__:
            case "ScalarEvent":
                self._check_tag(event)
                self._add(_scalar(event), len(event.value) + 1, event.anchor, key=event.value)
            case "AliasEvent":
                if event.anchor not in self._anchors:
                    raise Undecodable(f"refers to *{event.anchor[:60]} before it is complete")
                self._add(*self._anchors[event.anchor], None)
            case "MappingStartEvent" | "SequenceStartEvent" as begun:
                self._check_tag(event)
                if len(self._open) >= MAX_DEPTH:
                    raise Undecodable(_TOO_DEEP)
                self._open.append(_Open({} if begun.startswith("M") else [], event.anchor))
            case "MappingEndEvent" | "SequenceEndEvent":
                self._close()

    @staticmethod
    def _check_tag(event: Any) -> None:
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            raise Undecodable(f"holds the tag {event.tag[:60]!r}; only plain values are read")

    def _close(self) -> None:
        ended = self._open.pop()
        if isinstance(ended.value, dict):
            for merged in ended.merged:
                for key, value in merged.items():
                    ended.value.setdefault(key, value)
        self._add(ended.value, ended.weight, ended.anchor)

    def _add(self, value: Any, weight: int, anchor: str | None, *, key: str | None = None) -> None:
        """Put a complete value where it belongs; what an alias repeats weighs as much as the first time.

        A `version` is as it is written: 1.10 is not 1.1.
        """
        if anchor:
            self._anchors[anchor] = (value, weight)
        if not self._open:
            self._documents.append(value)
            return
        parent = self._open[-1]
        parent.weight += weight
        if parent.weight > _MAX_YAML_WEIGHT:
            raise Undecodable("grows beyond all bounds when its aliases are written out")
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is None:
            parent.key = self._key(value, key)
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            self._set(parent, parent.key, key if parent.key == "version" and is_number else value)
            parent.key = None

    @staticmethod
    def _key(value: Any, key: str | None) -> str:
        if key is not None:
            return key
        if isinstance(value, dict | list):
            raise Undecodable("has a list or an object for a key")
        return str(value)

    @staticmethod
    def _set(parent: _Open, key: str, value: Any) -> None:
        if key == "<<" and isinstance(value, dict | list):
            merged = value if isinstance(value, list) else [value]
            parent.merged.extend(entry for entry in merged if isinstance(entry, dict))
            return
        if key in parent.value:
            raise Undecodable(f"holds the key {key[:60]!r} twice in one object")
        parent.value[key] = value


def _scalar(event: Any) -> Any:
    """A scalar as YAML 1.2's core schema and JSON have it: quoted ones are text, and so are dates, yes and no."""
    text: str = event.value
    tag = (event.tag or "").removeprefix(_CORE)
    if event.style or tag in ("str", "!", "timestamp"):
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
