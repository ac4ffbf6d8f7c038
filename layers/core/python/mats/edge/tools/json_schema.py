"""Repair of owners' JSON Schemas: APIs reject all tools of a request if one schema breaks JSON Schema 2020-12.

https://json-schema.org/draft/2020-12/schema defines the values of each keyword. Keywords with other values are dropped,
so that a schema accepts no less than before. Unknown keywords are annotations, and stay.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

_MAX_REFERENCES = 8  # Chained references to follow; they may be circular
_TYPES = frozenset("array boolean integer null number object string".split())


def drop_invalid_keywords(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without keywords whose values are invalid, at any depth."""
    checked = {word: _CHECKS[word](value) if word in _CHECKS else value for word, value in schema.items()}
    return {word: value for word, value in checked.items() if value is not _INVALID}


def resolve_reference(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """The target of a schema's reference within the whole; empty if there is none."""
    for _ in range(_MAX_REFERENCES):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        found: Any = whole
        for part in reference.removeprefix("#/").split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        schema = found if isinstance(found, dict) else {}
    return {}


_EMPTY: Mapping[str, Any] = {"number": 0, "integer": 0, "boolean": False, "null": None, "array": []}
_MAX_DEPTH, _MAX_VALUE, _MAX_ENTRIES = 4, 200, 20
"""Of an example: nested objects, characters of a value that its owner states, properties of an object."""


def example_of(schema: object, whole: Mapping[str, Any], *, depth: int = 0) -> Any:
    """A value for a schema: the first that it states, else an empty one of its type; of an object what it requires."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return ""
    schema = resolve_reference(schema, whole)
    lists = [found for word in ("examples", "enum") if isinstance(found := schema.get(word), list)]
    stated = [schema[word] for word in ("const", "default", "example") if word in schema]
    for value in (*stated, *(found[0] for found in lists if found)):
        if len(json.dumps(value)) <= _MAX_VALUE:
            return value
    named = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    type = next((type for type in named if isinstance(type, str) and type != "null"), "")
    if type == "object" or isinstance(schema.get("properties"), dict):
        properties = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
        required = schema["required"] if _are_names(schema.get("required")) else list(properties)
        chosen = [name for name in properties if name in required] or list(properties)
        return {name: example_of(properties[name], whole, depth=depth + 1) for name in chosen[:_MAX_ENTRIES]}
    return _EMPTY.get(type, "")


_INVALID: Any = object()  # Marks an invalid value; None can be a valid one


def _if(allowed: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda value: value if allowed(value) else _INVALID


def _schema(value: Any) -> Any:
    return drop_invalid_keywords(value) if isinstance(value, dict) else value if isinstance(value, bool) else _INVALID


def _whole(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """For keywords that would accept less if a part of their value were dropped."""

    def check_whole(value: Any) -> Any:
        return value if check(value) == value else _INVALID

    return check_whole


def _schemas(value: Any) -> Any:
    read = [_schema(entry) for entry in value] if isinstance(value, list) else []
    return read if read and not any(entry is _INVALID for entry in read) else _INVALID


def _each_of(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """For objects: their entries with a valid value."""

    def check_entries(value: Any) -> Any:
        if not isinstance(value, dict):
            return _INVALID
        checked = {name: check(entry) for name, entry in value.items()}
        return {name: entry for name, entry in checked.items() if entry is not _INVALID}

    return check_entries


def _type(value: Any) -> Any:
    named = value if isinstance(value, list) else [value]
    known = [name for name in dict.fromkeys(n for n in named if isinstance(n, str)) if name in _TYPES]
    if not known or len(known) < len(set(map(str, named))):
        return _INVALID  # unknown names may mean any type
    return known if isinstance(value, list) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(n, str) for n in value) and len(set(value)) == len(value)


def _all(keywords: str, check: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    return dict.fromkeys(keywords.split(), check)


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    **_all(
        "additionalProperties unevaluatedProperties unevaluatedItems items propertyNames then else contentSchema",
        _schema,
    ),
    **_all("not if contains", _whole(_schema)),
    **_all("properties patternProperties $defs definitions dependentSchemas", _each_of(_schema)),
    **_all("allOf anyOf prefixItems", _schemas),
    "oneOf": _whole(_schemas),
    **_all("maximum minimum exclusiveMaximum exclusiveMinimum", _if(_is_number)),
    **_all("maxLength minLength maxItems minItems maxProperties minProperties maxContains minContains", _if(_is_count)),
    **_all("uniqueItems deprecated readOnly writeOnly", _if(lambda value: isinstance(value, bool))),
    **_all(
        "title description $comment format pattern contentEncoding contentMediaType $ref $dynamicRef",
        _if(lambda value: isinstance(value, str)),
    ),
    **_all("enum examples", _if(lambda value: isinstance(value, list))),
    **_all("$id $anchor $dynamicAnchor $vocabulary", lambda value: _INVALID),
    "type": _type,
    "multipleOf": _if(lambda value: _is_number(value) and value > 0),
    "required": _if(_are_names),
    "dependentRequired": _each_of(_if(_are_names)),
    "dependencies": _each_of(lambda value: value if _are_names(value) else _schema(value)),
}
"""Each returns the valid part of a keyword's value. Names of schemas are dropped: they may clash in a list of tools."""
