"""Contract of the ports `Registry` and `TrustBook`."""

import pytest

from mats.domain.capability.capability import Id, Kind
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned, pattern_id
from mats.domain.profile.origin import Placed
from mats.ports import Registry, TrustBook
from tests.builders import a_registration


@pytest.mark.parametrize("name", ["pay", "x'); DROP TABLE registry; --/ü%_"])
def test_a_put_item_is_read_back_unchanged(registry: Registry, name: str):
    written = a_registration(name=name, description="Zahlt — 支付", tags=("a", "b"), visible_to=("finance",))
    assert registry.put([written]) == {written.id: Placed.NEW}
    assert type(written).parse(registry.get([written.id])[written.id]) == written


def test_a_changed_registration_replaces_the_whole_item(registry: Registry):
    registry.put([a_registration(name="pay", description="old", tags=("x",))])
    changed = a_registration(name="pay", description="new")
    assert registry.put([changed]) == {changed.id: Placed.CHANGED}
    assert registry.put([changed]) == {changed.id: Placed.UNCHANGED}
    assert registry.get([changed.id])[changed.id] == changed.item()


def test_the_kind_under_an_id_cannot_change(registry: Registry):
    tool = a_registration(name="pay", kind=Kind.TOOL)
    registry.put([tool])
    assert registry.put([a_registration(name="pay", kind=Kind.AGENT)]) == {tool.id: Placed.OTHER_KIND}
    assert registry.get([tool.id])[tool.id] == tool.item()


def test_after_removal_the_id_is_free_for_any_kind(registry: Registry):
    tool = a_registration(name="pay", kind=Kind.TOOL)
    registry.put([tool])
    assert registry.remove(tool.id)
    assert not registry.remove(tool.id)
    assert registry.get([tool.id]) == {}
    assert registry.put([a_registration(name="pay", kind=Kind.AGENT)]) == {tool.id: Placed.NEW}


def test_thousands_are_read_in_one_call(registry: Registry):
    many = [a_registration(name=f"tool-{n}") for n in range(2_000)]
    registry.put(many[:150])
    assert len(registry.get([r.id for r in many])) == 150


def test_trust_is_set_changed_and_removed(trust: TrustBook):
    id = Id("com.acme/pay")
    assert trust.get([id]) == {id: NOTHING_ASSIGNED}
    trust.put(id, Assigned(trust=40))
    trust.put(id, Assigned(trust=0))
    assert trust.get([id]) == {id: Assigned(trust=0)}
    trust.put(id, NOTHING_ASSIGNED)
    assert trust.get([id]) == {id: NOTHING_ASSIGNED}
    assert trust.rows([id]) == {}


def test_the_nearest_row_of_a_namespace_counts_attribute_by_attribute(trust: TrustBook):
    wide, near = Assigned(trust=60, provider="Stripe"), Assigned(trust=80)
    trust.put(pattern_id("com.stripe"), wide)
    trust.put(pattern_id("com.stripe.mcp"), near)
    trust.put(Id("com.stripe.mcp/own"), Assigned(trust=5))
    expected = {
        Id("com.stripe/refund"): wide,
        Id("com.stripe.mcp/refund"): Assigned(trust=80, provider="Stripe"),
        Id("com.stripe.mcp.eu/refund"): Assigned(trust=80, provider="Stripe"),
        Id("com.stripe.mcp/own"): Assigned(trust=5, provider="Stripe"),
        Id("com.stripes/refund"): NOTHING_ASSIGNED,
        Id("com.strip/refund"): NOTHING_ASSIGNED,
    }
    assert trust.get(list(expected)) == expected
    assert trust.rows([pattern_id("com.stripe"), Id("com.stripe/refund")]) == {pattern_id("com.stripe"): wide}


def test_cleared_flags_are_those_of_a_capability_and_not_of_its_namespace(trust: TrustBook):
    id, mark = Id("com.acme/pay"), "ab" * 16
    trust.put(pattern_id("com.acme"), Assigned(trust=60, cleared="cd" * 16))
    assert trust.get([id]) == {id: Assigned(trust=60)}
    trust.put(id, Assigned(cleared=mark))
    assert trust.get([id]) == {id: Assigned(trust=60, cleared=mark)}
    assert trust.rows([id]) == {id: Assigned(cleared=mark)}


def test_what_is_assigned_to_thousands_is_read_in_one_call(trust: TrustBook):
    trust.put(pattern_id("com.n7"), Assigned(trust=7))
    ids = [Id(f"com.n{n % 40}.deep.er/tool {n}") for n in range(2_000)]
    assert [id for id, assigned in trust.get(ids).items() if assigned] == ids[7::40]


def test_the_ids_of_a_namespace_are_those_in_it_and_below_it(registry: Registry):
    places = ("com.acme", "com.acme.pay", "com.acme.pay.eu", "com.acme-pay", "com.acmes", "com", "org.com.acme")
    registry.put([a_registration(namespace=place, name=name) for place in places for name in ("a", "b/c", "~")])
    found = list(registry.ids(namespace="com.acme"))
    assert sorted(found) == sorted(Id(f"{place}/{name}") for place in places[:3] for name in ("a", "b/c", "~"))
    assert list(registry.ids(namespace="com.acme", after=found[3])) == found[4:]
    assert list(registry.ids(namespace="com.ac")) == []


def test_ids_go_on_after_any_of_them_even_a_removed_one(registry: Registry):
    registry.put([a_registration(namespace=f"com.n{n % 7}", name=f"tool {n}") for n in range(40)])
    every = list(registry.ids())
    assert len(every) == len(set(every)) == 40
    for place in (0, 17, 38, 39):
        assert list(registry.ids(after=every[place])) == every[place + 1 :]
    registry.remove(every[17])
    assert list(registry.ids(after=every[17])) == every[18:]
