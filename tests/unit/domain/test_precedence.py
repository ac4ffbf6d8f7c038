"""Rules on an order."""

from hypothesis import given
from hypothesis import strategies as st

from mats.domain.trust.precedence import apply_precedence

ORDERS = st.permutations(range(8)).flatmap(lambda order: st.integers(0, 8).map(lambda count: order[:count]))
RULES = st.dictionaries(st.integers(0, 9), st.frozensets(st.integers(0, 9), max_size=4), max_size=6)
ACYCLIC = RULES.map(lambda rule: {key: {other for other in above if other < key} for key, above in rule.items()})
"""Each stands below smaller numbers only."""


@given(ORDERS, ACYCLIC)
def test_everyone_stands_below_those_that_the_rule_names(order, rule):
    placed = apply_precedence(order, rule)
    assert sorted(placed) == sorted(order)
    for place, key in enumerate(placed):
        assert not rule.get(key, set()).intersection(placed[place + 1 :])


@given(ORDERS, ACYCLIC)
def test_those_without_a_rule_keep_their_order(order, rule):
    without = [key for key in order if not rule.get(key)]
    assert [key for key in apply_precedence(order, rule) if key in without] == without


@given(ORDERS, ACYCLIC)
def test_whoever_moves_stands_directly_below_the_last_of_those_named_or_with_others_that_moved(order, rule):
    placed = apply_precedence(order, rule)
    for key in placed:
        above = rule.get(key, set()).intersection(order)
        if not above or all(order.index(other) < order.index(key) for other in above):
            continue
        between = placed[max(placed.index(other) for other in above) + 1 : placed.index(key)]
        assert all(rule.get(other) for other in between)


@given(ORDERS, ACYCLIC, RULES)
def test_of_contradicting_rules_the_first_counts(order, first, second):
    placed = apply_precedence(order, first, second)
    assert sorted(placed) == sorted(order)
    for place, key in enumerate(placed):
        assert not first.get(key, set()).intersection(placed[place + 1 :])


@given(ORDERS, RULES)
def test_an_order_that_agrees_stays_and_so_does_one_without_rules(order, rule):
    assert apply_precedence(order) == list(order)
    placed = apply_precedence(order, rule)
    assert apply_precedence(placed, {}) == placed


def test_a_circle_keeps_its_order():
    assert apply_precedence("abc", {"a": "b", "b": "a"}) == ["c", "a", "b"]
