"""An example of an input: what a JSON Schema requires, with empty values to fill in."""

import json
from collections.abc import Mapping
from typing import Any

from mats.edge.tools.json_schema import resolve_reference

_MAX_DEPTH, _MAX_ENTRIES = 4, 20
_MAX_VALUE = 200
"""Characters of JSON; a longer value from a schema is not taken."""
_EMPTY: Mapping[str, Any] = {"string": "", "number": 0, "integer": 0, "boolean": False, "null": None}


def example_of(schema: object, whole: Mapping[str, Any], *, depth: int = 0) -> Any:
    """A value for a schema: its constant, default, example or first choice, else an empty value of its type.

    An object has the required properties, or all if none is required. `whole` resolves references.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return ""
    schema = _with_alternatives(resolve_reference(schema, whole), whole)
    for stated in _stated_values(schema):
        if _is_short(stated):
            return stated
    type = next(iter(_types(schema)), "object" if "properties" in schema else "string")
    if type == "object":
        properties = properties_of(schema)
        required = required_of(schema) & properties.keys() or properties.keys()
        chosen = [name for name in properties if name in required][:_MAX_ENTRIES]
        return {name: example_of(properties[name], whole, depth=depth + 1) for name in chosen}
    if type == "array":
        return [example_of(schema["items"], whole, depth=depth + 1)] if schema.get("items") else []
    return _EMPTY.get(type, "")


def properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schemas of an object's properties, by name."""
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def required_of(schema: Mapping[str, Any]) -> set[str]:
    """The names of the properties that an object must have."""
    found = schema.get("required")
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()


def _with_alternatives(schema: dict[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with what all of its `allOf` ask for, and the first of its other alternatives."""
    options = [
        *_objects(schema.get("allOf")), *_objects(schema.get("anyOf"))[:1], *_objects(schema.get("oneOf"))[:1],
    ]  # fmt: skip
    merged = dict(schema)
    for option in (resolve_reference(each, whole) for each in options):
        properties = {**properties_of(option), **properties_of(merged)}
        required = sorted(required_of(option) | required_of(merged))
        merged = {**option, **merged, **({"properties": properties, "required": required} if properties else {})}
    return merged


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _stated_values(schema: Mapping[str, Any]) -> list[Any]:
    stated = [schema[word] for word in ("const", "default", "example") if word in schema]
    return [
        *stated,
        *(found[0] for word in ("examples", "enum") if isinstance(found := schema.get(word), list) and found),
    ]


def _is_short(value: object) -> bool:
    try:
        return len(json.dumps(value, allow_nan=False)) <= _MAX_VALUE
    except (ValueError, RecursionError):
        return False


def _types(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("type")
    named = found if isinstance(found, list) else [found]
    return [type for type in named if isinstance(type, str) and type != "null"]
