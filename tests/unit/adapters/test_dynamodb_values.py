"""JSON into DynamoDB's typed values and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.adapters.dynamodb.tables import NotStorable, from_row, to_row

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
whole = st.integers(-(10**38) + 1, 10**38 - 1)
fractions = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x == 0 or 1e-130 <= abs(x) < 1e126)
values = st.recursive(
    st.none() | st.booleans() | whole | fractions | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts.filter(bool), inner, max_size=4),
    max_leaves=20,
)
items = st.dictionaries(texts.filter(bool), values, max_size=5)


def same(before: object, after: object) -> bool:
    """Equal, without a boolean converted to a number."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(same(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(same, before, after))
    if isinstance(before, float):
        after = float(after)  # the shortest decimal of a float can be a whole number that is no float
    return before == after and isinstance(before, bool) is isinstance(after, bool)


@settings(max_examples=40)
@given(items)
def test_json_values_survive_a_round_trip(item):
    said = {name: value for name, value in item.items() if value is not None}
    assert same(said, from_row(to_row(item)))


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_stored_exactly_or_rejected(number):
    try:
        row = to_row({"n": [number]})
    except NotStorable:
        assert number != 0
        assert not 1e-130 <= abs(number) < 1e38
    else:
        assert same({"n": [number]}, from_row(row))


@pytest.mark.parametrize("number", [10**38 + 1, -(10**40) - 7, 1e126, -1e300, 1e-131, 5e-324])
def test_a_number_that_the_service_cannot_keep_is_named_as_such(number):
    with pytest.raises(NotStorable, match="more than 38 digits, beyond 1E125 or nearer to 0 than 1E-130"):
        to_row({"descriptor": {"deep": [number]}})


@pytest.mark.parametrize("number", [9.9e125, -1e125, 1e-130, 10**38 - 1, 1 - 10**38])
def test_the_largest_and_the_smallest_number_are_stored(number):
    assert same({"n": number}, from_row(to_row({"n": number})))


@pytest.mark.parametrize("descriptor", [{"": 1}, {"a": [{"b": {"": None}}]}])
def test_an_entry_without_a_name_is_rejected_at_any_depth(descriptor):
    with pytest.raises(NotStorable, match="empty name"):
        to_row({"descriptor": descriptor})


def test_whole_numbers_come_back_whole_and_others_as_fractions():
    back = from_row({"whole": {"N": "3.0"}, "fraction": {"N": "3.5"}, "huge": {"N": "1E+30"}})
    assert [type(value) for value in back.values()] == [int, float, int]


def test_sets_come_back_as_lists_in_order():
    row = {"tags": {"SS": ["b", "c", "a"]}, "numbers": {"NS": ["10", "9", "1.5"]}, "binary": {"BS": [b"b", b"a"]}}
    assert from_row(row) == {"tags": ["a", "b", "c"], "numbers": [1.5, 9, 10], "binary": [b"a", b"b"]}


def test_binary_values_come_back_as_bytes_however_deep():
    row = {"top": {"B": b"\x00\xff"}, "deep": {"L": [{"M": {"in": {"B": b"x"}}}]}}
    back = from_row(row)
    assert back == {"top": b"\x00\xff", "deep": [{"in": b"x"}]}
    assert type(back["top"]) is bytes
    assert type(back["deep"][0]["in"]) is bytes


def test_none_is_omitted_at_the_top_level_and_stored_below():
    assert to_row({"gone": None, "kept": [None]}) == {"kept": {"L": [{"NULL": True}]}}
    assert from_row({"gone": {"NULL": True}}) == {"gone": None}
