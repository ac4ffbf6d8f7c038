"""Event patterns and input templates."""

from typing import Any

import pytest

from tests.aws.deployment import Misconfigured
from tests.aws.input_template import rendered
from tests.aws.patterns import UnknownOperator, matches

CHANGE: dict[str, Any] = {"eventName": "INSERT", "dynamodb": {"Keys": {"name": {"S": 'x"y'}}, "List": [1, 2]}}


def test_an_input_template_puts_json_outside_of_quotes_and_text_inside() -> None:
    template = (
        '{"a": <$.eventName>, "b": "is <$.dynamodb.Keys.name.S>", "c": <$.dynamodb.Keys>, "d": <$.dynamodb.List[1]>}'
    )
    assert rendered(template, CHANGE) == {
        "a": "INSERT",
        "b": 'is x"y',
        "c": CHANGE["dynamodb"]["Keys"],
        "d": 2,
    }


@pytest.mark.parametrize(
    "template",
    ['{"a": <$.eventname>}', '{"a": "<$.dynamodb>"}', '{"a": <eventName>}', '{"a": <$.eventName>', '{"a": <$.*>}'],
)
def test_a_mistake_in_an_input_template_is_loud(template: str) -> None:
    with pytest.raises(Misconfigured):
        rendered(template, CHANGE)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"source": ["a", "b"]}, True),
        ({"source": ["c"]}, False),
        ({"source": [{"prefix": "a"}], "detail": {"n": [1]}}, True),
        ({"detail": {"n": [True]}}, False),
        ({"detail": {"tags": ["y"]}}, True),
        ({"detail": {"n": [{"anything-but": [1, 2]}]}}, False),
        ({"detail": {"absent": [{"anything-but": "x"}]}}, False),
        ({"detail": {"absent": [{"exists": False}], "n": [{"exists": True}]}}, True),
        ({"detail-type": ["a"]}, False),
    ],
)
def test_event_patterns_match_as_eventbridge_documents_them(pattern: dict[str, Any], expected: bool) -> None:
    assert matches(pattern, {"source": "a", "detail": {"n": 1, "tags": ["x", "y"]}}) is expected


@pytest.mark.parametrize("pattern", [{"source": "a"}, {"n": [{"numeric": [">", 1]}]}, {"$or": [{"n": [1]}]}, {"n": []}])
def test_an_event_pattern_that_is_not_understood_raises(pattern: dict[str, Any]) -> None:
    with pytest.raises(UnknownOperator):
        matches({"absent": ["x"], **pattern}, {"source": "a"})
