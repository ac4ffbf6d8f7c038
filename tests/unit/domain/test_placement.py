"""The effect of a put."""

import pytest

from mats.domain.profile.origin import Placed, place, version_of
from tests.builders import an_item


@pytest.mark.parametrize(("before", "after"), [(1, 2), (1, True), ("a", "b")])
def test_any_other_value_is_a_change(before, after):
    item = place(version_of(an_item(descriptor={"n": before})), version_of(an_item(descriptor={"n": after})))
    assert item is Placed.CHANGED


def test_another_kind_is_rejected_even_where_all_else_is_equal():
    assert place(version_of(an_item(kind="tool")), version_of(an_item(kind="agent"))) is Placed.OTHER_KIND


def test_an_item_without_a_kind_may_be_replaced():
    before = {name: value for name, value in an_item().items() if name != "kind"}
    assert place(version_of(before), version_of(an_item())) is Placed.CHANGED


@pytest.mark.parametrize("placed", Placed)
def test_only_new_and_changed_items_are_written(placed):
    assert placed.writes is (placed in {Placed.NEW, Placed.CHANGED})
