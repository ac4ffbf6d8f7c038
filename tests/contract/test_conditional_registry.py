"""Contract of the port `ConditionalRegistry`."""

import json

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import PreconditionFailed
from mats.domain.profile.origin import Placed
from mats.ports import ConditionalRegistry
from tests.builders import a_registration
from tests.contract.conftest import LocalStores

PAY = a_registration(name="pay")


@pytest.fixture
def registry(stores: LocalStores) -> ConditionalRegistry:
    return stores.registry


def always(etag: str | None) -> bool:
    return True


def never(etag: str | None) -> bool:
    return False


def test_an_etag_changes_with_its_item_and_only_with_it(registry: ConditionalRegistry):
    assert registry.get_tagged(PAY.id) is None
    registry.put_if(always, PAY)
    first = registry.get_tagged(PAY.id)
    assert first is not None
    assert json.loads(first.text) == PAY.item()
    registry.put_if(always, PAY)
    assert registry.get_tagged(PAY.id) == first
    registry.put_if(always, a_registration(name="pay", version="2"))
    second = registry.get_tagged(PAY.id)
    assert second is not None
    assert second.etag != first.etag


def test_a_precondition_sees_the_etag_of_the_stored_item(registry: ConditionalRegistry):
    seen: list[str | None] = []
    for _ in range(2):
        registry.put_if(lambda etag: not seen.append(etag), PAY)
    assert registry.remove_if(lambda etag: not seen.append(etag), PAY.id)
    stored = [seen[1]] * 2
    assert seen == [None, *stored]
    assert seen[1] is not None


def test_a_put_returns_its_effect(registry: ConditionalRegistry):
    changed, other = a_registration(name="pay", version="2"), a_registration(name="pay", kind="agent")
    for registration, placed in (
        (PAY, Placed.NEW),
        (PAY, Placed.UNCHANGED),
        (changed, Placed.CHANGED),
        (other, Placed.OTHER_KIND),
    ):
        assert registry.placement(registration) is placed
        assert registry.put_if(always, registration) is placed


def test_a_placement_writes_nothing(registry: ConditionalRegistry):
    registry.placement(PAY)
    assert registry.get_tagged(PAY.id) is None


def test_a_put_whose_precondition_fails_writes_nothing(registry: ConditionalRegistry):
    with pytest.raises(PreconditionFailed, match="pay was changed by someone else"):
        registry.put_if(never, PAY)
    assert registry.get_tagged(PAY.id) is None


def test_a_removal_whose_precondition_fails_removes_nothing(registry: ConditionalRegistry):
    registry.put_if(always, PAY)
    with pytest.raises(PreconditionFailed):
        registry.remove_if(never, PAY.id)
    assert registry.get_tagged(PAY.id) is not None


def test_a_removal_of_nothing_asks_no_precondition(registry: ConditionalRegistry):
    assert registry.remove_if(never, Id("com.acme/none")) is False
