"""Event patterns."""

from typing import Any

import pytest

from tests.aws.patterns import UnknownOperator, matches


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
