import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.adapters.grouping import group_by_similarity
from mats.domain.learning.outcome import pack_vector

EAST, NORTH, NORTH_EAST = (1.0, 0.0), (0.0, 1.0), (0.7, 0.7)
vectors = st.lists(st.tuples(*[st.floats(-1, 1)] * 3), max_size=12)


def packed(*rows: tuple[float, ...]) -> list[bytes]:
    return [pack_vector(row) for row in rows]


def test_the_vector_with_most_neighbours_leads_a_group_of_them():
    [group] = group_by_similarity(packed(EAST, NORTH_EAST, NORTH), [], least_cosine=0.6)
    assert group.members == [1, 0, 2]


def test_others_are_alone():
    groups = group_by_similarity(packed(EAST, NORTH, EAST), [], least_cosine=0.9)
    assert [group.members for group in groups] == [[0, 2], [1]]


def test_what_lies_near_the_centre_is_beside_a_group():
    groups = group_by_similarity(packed(EAST, NORTH), packed(NORTH, NORTH_EAST, NORTH), least_cosine=0.8)
    assert [group.beside for group in groups] == [[], [0, 2]]


def test_nothing_is_no_group():
    assert group_by_similarity([], packed(EAST), least_cosine=0.5) == []


@pytest.mark.parametrize("least", [0.0, 0.5, 0.99])
@given(rows=vectors)
def test_each_vector_is_in_one_group(rows, least):
    groups = group_by_similarity(packed(*rows), [], least_cosine=least)
    assert sorted(one for group in groups for one in group.members) == list(range(len(rows)))
    assert groups == group_by_similarity(packed(*rows), [], least_cosine=least)
