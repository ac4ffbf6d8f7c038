"""Schemas that owners write, against the meta-schema of JSON Schema 2020-12."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mats.domain.capability.json_schema import _CHECKS, drop_invalid_keywords

HONEST = {
    "type": "object",
    "properties": {
        "amount": {"type": ["number", "null"], "exclusiveMinimum": 0, "description": "How much."},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "uniqueItems": True},
        "type": {"enum": ["a", None], "default": None},
        "free": True,
    },
    "required": ["amount"],
    "additionalProperties": False,
    "$defs": {"x": {"anyOf": [{"const": 1}, {"$ref": "#/$defs/x"}]}},
    "dependentRequired": {"tags": ["amount"]},
    "x-unknown": [1, {"type": "any"}],
}


def test_valid_schema_is_unchanged():
    Draft202012Validator.check_schema(HONEST)
    assert drop_invalid_keywords(HONEST) == HONEST


@pytest.mark.parametrize(("written", "read"), [
    ({"type": "str"}, {}), ({"type": ["string", "any"]}, {}), ({"type": ["string", "string"]}, {"type": ["string"]}),
    ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, {"type": "integer", "minimum": 0}),
    ({"type": "string", "required": True}, {"type": "string"}), ({"items": [{"type": "string"}]}, {}),
    ({"properties": {"a": {"type": "float", "title": "A"}, "b": "text"}}, {"properties": {"a": {"title": "A"}}}),
    ({"anyOf": []}, {}), ({"enum": []}, {}), ({"anyOf": [{"type": "string"}, "null"]}, {}),
    ({"not": {"type": "str"}, "if": {"minimum": "1"}}, {}), ({"oneOf": [{"type": "str"}, {"type": "null"}]}, {}),
    ({"$id": "https://a.example", "title": None}, {}),
])  # fmt: skip
def test_invalid_keywords_are_dropped(written, read):
    Draft202012Validator.check_schema(read)
    assert drop_invalid_keywords(written) == read


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from(["string", "any", "a", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*_CHECKS, "const", "default", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*_CHECKS, "const", "x"]), JSON, max_size=5))
def test_any_json_is_repaired_to_a_valid_schema(written):
    read = drop_invalid_keywords(written)
    Draft202012Validator.check_schema(read)
    assert drop_invalid_keywords(read) == read
