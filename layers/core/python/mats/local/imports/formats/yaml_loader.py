"""Load untrusted YAML as JSON values, within bounds. Import this module late.

Uses PyYAML: the YAML project maintains it, libyaml parses for it in C, and most environments have it already.
"""

import re
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.reader import ReaderError

from mats.local.imports.formats.decoding import MAX_DEPTH, MAX_VALUES, TOO_DEEP, Undecodable, YamlInvalid
from mats.local.imports.formats.values import Json

_MAX_WEIGHT = 20_000_000
"""Limit of the document's approximate length as JSON, with its aliases expanded."""
_COLLECTION_WEIGHT = 4
"""Characters of an object or a list besides its entries."""

_TOO_MANY = f"holds more than {MAX_VALUES:,} values"

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = frozenset(("true", "True", "TRUE", "false", "False", "FALSE"))
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_FLOAT = re.compile(r"[-+]?([0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30}(?=[eE]))([eE][-+]?[0-9]{1,3})?")
_CORE = "tag:yaml.org,2002:"
_TAGS = frozenset(f"{_CORE}{name}" for name in "str int float bool null map seq timestamp".split()) | {"!"}
_NUMBER_TAGS = (f"{_CORE}int", f"{_CORE}float")
_TEXT_TAGS = (f"{_CORE}str", f"{_CORE}timestamp", "!")


def load_yaml(text: str) -> Json:
    """The value of a YAML text with one document."""
    if sum(text.count(mark) for mark in ",[{\n") > 2 * MAX_VALUES:
        raise Undecodable(_TOO_MANY)
    try:
        return _Loader(text).get_single_data()
    except ReaderError as error:
        raise Undecodable(f"holds a character that YAML forbids ({error.reason})") from error
    except ComposerError as error:
        raise Undecodable("holds several YAML documents: write each to its own file") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise YamlInvalid(f"is not YAML: {error.problem}{where}") from error
    except yaml.YAMLError as error:
        raise YamlInvalid(f"is not YAML: {str(error)[:200]}") from error


class _Loader(yaml.SafeLoader):
    """A safe loader of JSON values: keys are text and distinct, dates are text, tags make no objects.

    Scalars are those of YAML 1.2's core schema. Aliases are weighed while nodes are composed, before any is expanded.
    """

    def __init__(self, text: str) -> None:
        fast = getattr(yaml, "CSafeLoader", None)
        super().__init__("" if fast else text)
        self._events: Any = fast(text) if fast else self
        for name in ("check_event", "peek_event", "get_event") if fast else ():
            setattr(self, name, getattr(self._events, name))  # libyaml parses, and composing stays Python's
        self._complete: dict[str, yaml.Node] = {}
        self._weights: dict[yaml.Node, int] = {}
        self._depth = self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        """Compose a node within the bounds on values, depth and weight."""
        event = self._events.peek_event()
        if isinstance(event, yaml.AliasEvent):
            self._events.get_event()
            anchor = str(event.anchor)
            if anchor not in self._complete:
                raise Undecodable(f"refers to *{anchor[:60]} before it is complete")
            return self._complete[anchor]
        if event.tag is not None and event.tag not in _TAGS:
            raise Undecodable(f"holds the tag {event.tag[:60]!r}: only plain values are allowed")
        node = self._compose_scalar() if isinstance(event, yaml.ScalarEvent) else self._compose_collection(event)
        if event.anchor:
            self._complete[event.anchor] = node
        return node

    def _compose_scalar(self) -> yaml.Node:
        """Compose a scalar: quoted ones are text, and so is a plain one that is no JSON value."""
        event = self._events.get_event()
        self._count(1)
        tag = "str" if event.style or event.tag in _TEXT_TAGS else _core_tag(event.value)
        node = yaml.ScalarNode(_CORE + tag, event.value)
        self._weights[node] = len(event.value) + 1
        return node

    def _compose_collection(self, event: Any) -> yaml.Node:
        if self._depth >= MAX_DEPTH:
            raise Undecodable(TOO_DEEP)
        self._count(2)
        self._depth += 1
        is_list = isinstance(event, yaml.SequenceStartEvent)
        compose: Any = self.compose_sequence_node if is_list else self.compose_mapping_node
        node: yaml.Node = compose(None)
        node.start_mark = node.end_mark = None
        node.tag = _CORE + ("seq" if is_list else "map")
        parts = node.value if is_list else [part for pair in node.value for part in pair]
        weight = self._weights[node] = _COLLECTION_WEIGHT + sum(map(self._weights.__getitem__, parts))
        if weight > _MAX_WEIGHT:
            raise Undecodable(f"has more than {_MAX_WEIGHT:,} characters with its aliases expanded")
        if not is_list:
            node.value = _distinct_pairs(node.value)
        self._depth -= 1
        return node

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > 2 * MAX_VALUES:
            raise Undecodable(_TOO_MANY)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """An object; its `version` is text as written: 1.10 is not 1.1."""
        return {
            key.value: value.value
            if key.value == "version" and value.tag in _NUMBER_TAGS
            else self.construct_object(value, deep=deep)
            for key, value in node.value
        }


def _distinct_pairs(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The entries of an object, then the merged ones (`<<`) whose keys it lacks."""
    own: dict[str, tuple[Any, Any]] = {}
    merged: list[Any] = []
    for key, value in pairs:
        if not isinstance(key, yaml.ScalarNode):
            raise Undecodable("has a list or an object as a key")
        if key.value == "<<" and not isinstance(value, yaml.ScalarNode):
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
        elif key.value in own:
            raise Undecodable(f"holds the key {key.value[:60]!r} twice in one object")
        else:
            own[key.value] = (key, value)
    for other in merged:
        for key, value in other.value if isinstance(other, yaml.MappingNode) else ():
            own.setdefault(key.value, (key, value))
    return list(own.values())


def _core_tag(text: str) -> str:
    """The type of a plain scalar in YAML 1.2's core schema."""
    if text in _NULL:
        return "null"
    if text in _BOOL:
        return "bool"
    if _INT.fullmatch(text):
        return "int"
    return "float" if _FLOAT.fullmatch(text) else "str"
