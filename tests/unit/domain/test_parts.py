"""Taking from several lists in turn."""

from hypothesis import given
from hypothesis import strategies as st

from mats.domain.shortlist.rank import take_in_turn

LISTS = st.lists(st.lists(st.integers(0, 12), unique=True, max_size=8), max_size=5)


def test_each_list_gives_its_next_item_that_is_not_taken():
    assert take_in_turn([["a", "b", "c"], ["a", "d"], ["b", "e", "f"]]) == ["a", "d", "b", "c", "e", "f"]


@given(LISTS)
def test_every_item_is_taken_once(lists):
    taken = take_in_turn(lists)
    assert len(taken) == len(set(taken))
    assert set(taken) == {item for items in lists for item in items}


@given(st.lists(st.integers(), unique=True))
def test_one_list_keeps_its_order(items):
    assert take_in_turn([items]) == items
