"""Access to JSON values that may have any shape."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pydantic.alias_generators import to_camel

from mats.domain.text.words import word_set

Json: TypeAlias = Any  # A JSON value


def first_of(value: Json) -> Json:
    """The first entry of a list; any other value itself."""
    return value[0] if isinstance(value, list) and value else value


def value_at(value: object, *path: str) -> Any:
    """The value at a path of keys; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mapping_at(value: object, *path: str) -> Mapping[str, Any]:
    """The object at a path of keys; empty for anything else."""
    found = value_at(value, *path)
    return found if isinstance(found, Mapping) else {}


def text_at(value: object, *path: str) -> str:
    """The text at a path of keys, trimmed, or a number as text; empty for anything else."""
    found = value_at(value, *path)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return str(found)
    return found.strip() if isinstance(found, str) else ""


_KEYED = word_set("variables securityschemes security schemes scopes params metadata _meta")
"""Attributes, in lower case, whose objects have names of their own as keys."""


def to_camel_case(value: Json, *, is_keyed: bool = False) -> Json:
    """A value with the names of attributes as JSON has them, where Python or an old schema has `is_required`, `in_`."""
    if isinstance(value, list):
        return [to_camel_case(each, is_keyed=is_keyed) for each in value]
    if not isinstance(value, Mapping):
        return value
    named = [(key if is_keyed or "_" not in key else to_camel(key).rstrip("_"), each) for key, each in value.items()]
    return {key: to_camel_case(each, is_keyed=not is_keyed and key.lower() in _KEYED) for key, each in named}


def entries(value: object) -> list[Any]:
    """The entries of a list; none of any other value."""
    return list(value) if isinstance(value, list | tuple) else []


def texts(value: object) -> list[str]:
    """The texts in a list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list | tuple) else []


def objects(value: object) -> Sequence[Mapping[str, Any]]:
    """The objects in a list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list | tuple) else []
