"""Stores of the local system alone: conditional writes, and a listing for readers that keep a copy."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.memory import SqliteMemory
from mats.adapters.sqlite.profiles import SqliteListing
from mats.adapters.sqlite.queue import SqliteQueue
from mats.adapters.sqlite.receipts import SqliteOutcomes
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry
from mats.domain.capability.registration import apply_patch
from mats.domain.errors import CapabilityNotFound, PreconditionFailed, RegistrationInvalid
from mats.domain.learning.outcome import Event, pack_vector
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import Status
from mats.ports import Stored
from tests.builders import a_profile, a_registration
from tests.contract.conftest import InSqlite, Renewable
from tests.contract.learning import a_feedback, a_receipt
from tests.fakes import CountingIds, FakeClock

PAY = a_registration(name="pay")


@pytest.fixture
def registry(database: Database) -> SqliteRegistry:
    return SqliteRegistry(database, Announcer(FakeClock(), CountingIds()))


@pytest.fixture
def listing(database: Database) -> SqliteListing:
    return SqliteListing(database, database.watch())


@pytest.fixture
def renewable(request: pytest.FixtureRequest) -> Renewable:
    return InSqlite(request).renewable()


def always(etag: str | None) -> bool:
    return True


def never(etag: str | None) -> bool:
    return False


def test_an_etag_changes_with_its_item_and_only_with_it(registry: SqliteRegistry):
    assert registry.get_tagged(PAY.id) is None
    assert registry.put_if(always, PAY) is Placed.NEW
    first = registry.get_tagged(PAY.id)
    assert first is not None
    assert json.loads(first.text) == PAY.item()
    assert registry.put_if(always, PAY) is Placed.UNCHANGED
    assert registry.get_tagged(PAY.id) == first
    registry.put_if(always, a_registration(name="pay", version="2"))
    second = registry.get_tagged(PAY.id)
    assert second is not None
    assert second.etag != first.etag


def test_a_precondition_sees_the_etag_of_the_stored_item(registry: SqliteRegistry):
    seen: list[str | None] = []
    for _ in range(2):
        registry.put_if(lambda etag: not seen.append(etag), PAY)
    assert registry.remove_if(lambda etag: not seen.append(etag), PAY.id)
    stored = [seen[1]] * 2
    assert seen == [None, *stored]
    assert seen[1] is not None


def test_a_write_whose_precondition_fails_changes_nothing(registry: SqliteRegistry):
    assert registry.remove_if(never, PAY.id) is False
    with pytest.raises(PreconditionFailed, match="pay was changed by someone else"):
        registry.put_if(never, PAY)
    assert registry.get_tagged(PAY.id) is None
    registry.put_if(always, PAY)
    with pytest.raises(PreconditionFailed):
        registry.remove_if(never, PAY.id)
    assert registry.get_tagged(PAY.id) is not None


def test_edits_at_once_lose_nothing(registry: SqliteRegistry):
    registry.put_if(always, PAY)
    numbers = range(40)

    def add(number: int) -> None:
        registry.edit(PAY.id, lambda item: apply_patch(item, {"tags": [*item.get("tags", ()), f"t{number}"]}))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, numbers))
    assert sorted(registry.get([PAY.id])[PAY.id]["tags"]) == sorted(f"t{number}" for number in numbers)


def test_an_edit_that_fails_writes_nothing(registry: SqliteRegistry):
    with pytest.raises(CapabilityNotFound):
        registry.edit(PAY.id, lambda item: PAY)
    registry.put_if(always, PAY)
    with pytest.raises(PreconditionFailed):
        registry.edit(PAY.id, lambda item: apply_patch(item, {"tags": ["a"]}), never)
    with pytest.raises(RegistrationInvalid):
        registry.edit(PAY.id, lambda item: apply_patch(item, {"kind": "robot"}))
    assert registry.get([PAY.id])[PAY.id] == PAY.item()


def revision(rev: int, name: str = "pay", **changes: object) -> Stored:
    return Stored(a_profile(name=name).model_copy(update={"rev": rev, **changes}))


def test_registered_ids_come_in_order_with_their_kinds(registry: SqliteRegistry, listing: SqliteListing):
    for name, kind in (("b", "agent"), ("a", "tool"), ("c", "skill")):
        registry.put_if(always, a_registration(name=name, kind=kind))
    assert list(listing.kinds().items()) == [
        ("com.acme.pay/a", "tool"),
        ("com.acme.pay/b", "agent"),
        ("com.acme.pay/c", "skill"),
    ]


def test_every_write_changes_the_version(registry: SqliteRegistry, listing: SqliteListing, renewable: Renewable):
    queue = SqliteQueue(registry.database, "1:test")
    versions = [listing.version()]
    for write in (
        lambda: registry.put_if(always, a_registration(name="pay")),
        lambda: renewable.save(revision(1)),
        lambda: queue.settle(queue.take(1), frozenset()),
        lambda: registry.remove_if(always, a_registration(name="pay").id),
    ):
        write()
        versions.append(listing.version())
        assert listing.version() == versions[-1]
    assert len(set(versions)) == len(versions)


def test_changes_since_a_position_are_the_revisions_indexed_later_and_from_the_start_all(
    renewable: Renewable, listing: SqliteListing
):
    a, b, c = (revision(1, name).profile.id for name in "abc")
    renewable.save(revision(1, "a"))
    renewable.profiles.save([revision(1, "c")])
    position, ids = listing.changes(None)
    assert sorted(ids) == [a, c]
    assert listing.changes(position) == (position, [])
    renewable.save(revision(1, "b"))
    renewable.save(revision(2, "a", status=Status.DELETED))
    position, ids = listing.changes(position)
    assert sorted(set(ids)) == [a, b]
    assert listing.changes(position) == (position, [])


def test_a_profile_is_listed_with_whether_the_index_has_it(renewable: Renewable, listing: SqliteListing):
    renewable.save(revision(1, "a"))
    renewable.profiles.save([revision(2, "a", endpoint="https://new.example"), revision(1, "b")])
    listed = {profile.id: (profile.rev, indexed) for profile, indexed in listing.profiles(["com.acme.pay/a"])}
    assert listed == {"com.acme.pay/a": (2, False)}
    renewable.profiles.mark_indexed({revision(1, "b").profile.id: 1})
    ((profile, indexed),) = listing.profiles([revision(1, "b").profile.id])
    assert (profile.rev, indexed) == (1, True)


def test_requests_of_reports_that_are_withdrawn_are_not_remembered(database: Database):
    outcomes, memory = SqliteOutcomes(database), SqliteMemory(database, encoder="e")
    for name, caller in (("a", "ann"), ("b", "ann"), ("c", "ben")):
        receipt = a_receipt(query_id=name, caller=caller, encoder="e", vector=pack_vector([1.0, 0.0]))
        outcomes.record(receipt, a_feedback(receipt, (PAY.id, Event.SUCCEEDED)))
    outcomes.confirm("b")
    outcomes.withdraw_of("ann")
    assert [each.memory.query_id for each in memory.nearest([1.0, 0.0], depth=9)] == ["b", "c"]
