"""Messages of validation, in our words for every type of error that our models can raise."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from mats.domain.capability.faults import _MESSAGES, RequestModel, faults_of
from mats.domain.capability.registration import Registration
from mats.domain.errors import Invalid
from mats.domain.search.query import Query
from mats.edge.schema import ListParameters
from mats.local.console.selection import ListQuery

for module in ("mats.edge.mcp.tools", "mats.edge.ard.endpoints", "mats.edge.schema"):
    import_module(module)

RAISED = {
    "model": {"model_type"},
    "model-fields": {"missing", "extra_forbidden", "model_attributes_type"},
    "str": {"string_type", "string_unicode", "string_too_short", "string_too_long", "string_pattern_mismatch"},
    "int": {"int_type", "int_parsing", "int_parsing_size", "int_from_float", "greater_than_equal", "less_than_equal"},
    "float": {"float_type", "float_parsing", "finite_number", "greater_than_equal", "less_than_equal"},
    "bool": {"bool_type", "bool_parsing"},
    "list": {"list_type", "too_short", "too_long"},
    "tuple": {"tuple_type", "too_short", "too_long"},
    "set": {"set_type", "too_short", "too_long"},
    "dict": {"dict_type", "too_short", "too_long"},
    "enum": {"enum"},
    "literal": {"literal_error"},
    "none": {"none_required"},
    "tagged-union": {"union_tag_invalid", "union_tag_not_found"},
}
"""The types of errors of each kind of schema; functions raise a `value_error` in words of their own."""
NOTHING = {
    "model-field", "nullable", "default", "union", "definitions", "definition-ref", "any", "to-string",
    "function-plain", "function-before", "function-after", "function-wrap", "no-info", "with-info",
    "json-or-python", "is-instance",
}  # fmt: skip
IN_CODE = {"extra_forbidden"}


def models() -> Iterator[type[BaseModel]]:
    """Every model that is made from what callers and owners write."""
    waiting: list[type[BaseModel]] = [RequestModel]
    while waiting:
        model = waiting.pop()
        yield model
        waiting += model.__subclasses__()
    yield from (Registration, ListQuery)


def schema_types(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("type"), str) and not schema.keys() <= {"type", "function"}:
            yield schema["type"]
        for key, value in schema.items():
            if key not in ("metadata", "serialization", "config"):
                yield from schema_types(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from schema_types(value)


def test_every_error_that_our_models_raise_has_a_message_of_ours():
    kinds = {kind for model in models() for kind in schema_types(model.__pydantic_core_schema__)}
    assert {"str", "int", "tuple", "enum", "model"} <= kinds
    unknown = kinds - RAISED.keys() - NOTHING
    assert not unknown, f"which errors do these schemas raise? {unknown}"
    raised = {error for kind in kinds & RAISED.keys() for error in RAISED[kind]}
    assert raised <= _MESSAGES.keys() | IN_CODE


def fault(model: type[BaseModel], value: dict[str, Any]) -> str:
    try:
        model.model_validate(value)
    except ValidationError as error:
        [found] = faults_of(error, model, {})
        return str(found)
    except Invalid as error:
        return str(error)
    raise AssertionError("it is valid")


@pytest.mark.parametrize(
    ("model", "value", "message"),
    [
        (Query, {"query": "x", "kinds": "tool"}, "kinds: must be a list"),
        (Query, {"query": "x", "kinds": ["robot"]}, "kinds.0: must be 'model', 'agent', 'tool' or 'skill'"),
        (Query, {"query": 5}, "query: must be text"),
        (Query, {"query": "x" * 2_001}, "query: must have at most 2000 characters"),
        (Query, {"query": "x", "limit": "5"}, "limit: must be a whole number"),
        (Query, {"query": "x", "limit": 0}, "limit: must be at least 1"),
        (Query, {"query": "x", "explain": 1}, "explain: must be true or false"),
        (Query, {"query": "x", "tags": ["a"] * 51}, "tags: must have at most 50 entries"),
        (Query, {"query": "x", "tags": [""]}, "tags.0: must not be empty"),
        (Query, {"query": "x", "limits": 1}, "limits: is not a known attribute; did you mean `limit`?"),
        (Query, {"query": "x", "holds": {"auths": []}}, "holds.auths: is not a known attribute; did you mean `auth`?"),
        (
            Query,
            {"query": "x", "holds": {"limits": 1}},
            "holds.limits: is not a known attribute; known are auth, transports, read_only, leave_out",
        ),
        (
            Query,
            {"query": "x", "holds": {"text": 1}},
            "holds.text: is not a known attribute; known are auth, transports, read_only, leave_out",
        ),
        (ListParameters, {"limit": "many"}, "limit: must be a whole number"),
        (ListParameters, {"limit": "101"}, "limit: must be at most 100"),
    ],
)
def test_messages_say_what_is_expected(model, value, message):
    assert fault(model, value) == message


def test_no_message_speaks_of_inputs_or_python_types():
    for message in _MESSAGES.values():
        assert not {"input", "should", "tuple", "integer", "dictionary", "string"} & set(message.lower().split())
