"""Schemas as owners write them, made such as APIs take them: one that breaks JSON Schema 2020-12 is refused with all.

https://json-schema.org/draft/2020-12/schema says what each keyword may hold. What holds something else is left out, so
that a schema allows no less than it did; keywords that are not known are annotations, and stay.
"""

from collections.abc import Callable, Mapping
from typing import Any

_TYPES = frozenset("array boolean integer null number object string".split())


def valid(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without what JSON Schema 2020-12 does not allow in it, at any depth."""
    read = {keyword: _READERS.get(keyword, _as_it_is)(value) for keyword, value in schema.items()}
    return {keyword: value for keyword, value in read.items() if value is not _WRONG}


_WRONG: Any = object()
"""Stands for what a keyword must not hold; None would be a value."""


def _as_it_is(value: Any) -> Any:
    return value


def _if(allowed: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda value: value if allowed(value) else _WRONG


def _schema(value: Any) -> Any:
    return valid(value) if isinstance(value, dict) else value if isinstance(value, bool) else _WRONG


def _whole(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """For what would allow less if something were left out in it."""

    def read(value: Any) -> Any:
        return value if reader(value) == value else _WRONG

    return read


def _schemas(value: Any) -> Any:
    read = [_schema(entry) for entry in value] if isinstance(value, list) else []
    return read if read and not any(entry is _WRONG for entry in read) else _WRONG


def _named_schemas(value: Any) -> Any:
    if not isinstance(value, dict):
        return _WRONG
    read = {name: _schema(entry) for name, entry in value.items()}
    return {name: entry for name, entry in read.items() if entry is not _WRONG}


def _type(value: Any) -> Any:
    named = value if isinstance(value, list) else [value]
    known = [name for name in dict.fromkeys(n for n in named if isinstance(n, str)) if name in _TYPES]
    if not known or len(known) < len(set(map(str, named))):
        return _WRONG  # the others may stand for anything
    return known if isinstance(value, list) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(n, str) for n in value) and len(set(value)) == len(value)


def _dependent(value: Any) -> Any:
    return {k: v for k, v in value.items() if _are_names(v)} if isinstance(value, dict) else _WRONG


def _dependencies(value: Any) -> Any:
    if not isinstance(value, dict):
        return _WRONG
    read = {name: entry if _are_names(entry) else _schema(entry) for name, entry in value.items()}
    return {name: entry for name, entry in read.items() if entry is not _WRONG}


def _each(keywords: str, reader: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    return dict.fromkeys(keywords.split(), reader)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    **_each(
        "additionalProperties unevaluatedProperties unevaluatedItems items propertyNames then else contentSchema",
        _schema,
    ),
    **_each("not if contains", _whole(_schema)),
    **_each("properties patternProperties $defs definitions dependentSchemas", _named_schemas),
    **_each("allOf anyOf prefixItems", _schemas),
    "oneOf": _whole(_schemas),
    **_each("maximum minimum exclusiveMaximum exclusiveMinimum", _if(_is_number)),
    **_each(
        "maxLength minLength maxItems minItems maxProperties minProperties maxContains minContains", _if(_is_count)
    ),
    **_each("uniqueItems deprecated readOnly writeOnly", _if(lambda value: isinstance(value, bool))),
    **_each(
        "title description $comment format pattern contentEncoding contentMediaType $ref $dynamicRef",
        _if(lambda value: isinstance(value, str)),
    ),
    **_each("enum examples", _if(lambda value: isinstance(value, list))),
    **_each("$id $anchor $dynamicAnchor $vocabulary", lambda value: _WRONG),
    "type": _type,
    "multipleOf": _if(lambda value: _is_number(value) and value > 0),
    "required": _if(_are_names),
    "dependentRequired": _dependent,
    "dependencies": _dependencies,
}
"""What each keyword may hold. Names of schemas themselves are left out: within a list of tools they may clash."""
