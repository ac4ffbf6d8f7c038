"""The local event queue: atomic announcements, at-least-once delivery, visible dead letters."""

import os

import pytest

from mats.adapters.sqlite import queue as module
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.queue import MAX_ATTEMPTS, SqliteQueue
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry, SqliteTrust
from mats.domain.profile.assignment import Assigned
from tests.builders import a_registration
from tests.fakes import CountingIds, FakeClock

HERE = "1:here"


@pytest.fixture
def events(database: Database) -> SqliteQueue:
    return SqliteQueue(database, HERE)


@pytest.fixture
def registry(database: Database) -> SqliteRegistry:
    return SqliteRegistry(database, Announcer(FakeClock(), CountingIds()))


def test_every_change_is_announced_once_and_in_order(database, registry, events):
    first, second = a_registration(name="a"), a_registration(name="b")
    registry.put([first, second])
    registry.put([first])
    registry.put([a_registration(name="a", description="changed")])
    registry.remove(second.id)
    SqliteTrust(database, registry.announce).put(first.id, Assigned(trust=5))
    taken = events.take(10)
    assert [(e.source, e.change, e.id) for e in taken] == [
        ("Registry", "INSERT", first.id),
        ("Registry", "INSERT", second.id),
        ("Registry", "MODIFY", first.id),
        ("Registry", "REMOVE", second.id),
        ("Trust", "MODIFY", first.id),
    ]


def test_taken_changes_are_leased_and_settled_ones_deleted_and_finished(registry, events):
    ids = [a_registration(name=n).id for n in "abc"]
    assert not events.has_unfinished(ids[0])
    registry.put([a_registration(name=n) for n in "abc"])
    taken = events.take(2)
    assert len(events.take(10)) == 1
    events.settle(taken, frozenset())
    assert events.depth() == (1, 0)
    assert [events.has_unfinished(id) for id in ids] == [False, False, True]


def test_a_failed_event_comes_again_later_and_is_dead_in_the_end(registry, events, monkeypatch):
    ids = [a_registration(name=n).id for n in "ba"]
    registry.put([a_registration(name=n) for n in "ba"])
    now = [1_000.0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    for attempt in range(1, MAX_ATTEMPTS + 1):
        taken = events.take(2)
        assert [event.attempts for event in taken] == [attempt] * 2
        assert events.dead_letters() == []
        events.settle(taken, frozenset(event.event_id for event in taken), "it failed")
        assert events.take(1) == []
        now[0] += 3_600
    assert events.depth() == (0, 2)
    assert events.dead_letters() == [(id, "it failed") for id in ids]
    assert events.has_unfinished(ids[0])
    assert events.redrive() == 2
    assert len(events.take(2)) == 2


@pytest.mark.parametrize(("holder", "released"), [("4194305:gone", 1), ("1:init", 0)])
def test_leases_of_an_exited_process_alone_are_redelivered(database, registry, events, holder, released):
    registry.put([a_registration(name="a")])
    SqliteQueue(database, holder).take(1)
    assert events.take(1) == []
    events.release_orphans()
    assert len(events.take(1)) == released


def test_failing_counts_failed_changes_that_are_neither_settled_nor_leased(database, registry, events):
    registry.put([a_registration(name=n) for n in "abc"])
    assert events.failing() == 0  # no attempt yet
    first, *others = events.take(2)
    assert SqliteQueue(database, "2:other").failing() == 0  # leased
    events.settle([first, *others], frozenset({first.event_id}), "it failed")
    assert (events.failing(), events.depth().waiting) == (1, 2)
    dead = first._replace(attempts=MAX_ATTEMPTS)
    events.settle([dead], frozenset({first.event_id}), "it failed")
    assert (events.failing(), events.depth().dead) == (1, 1)


def test_a_process_releases_its_own_unsettled_changes(database, registry):
    events = SqliteQueue(database, f"{os.getpid()}:here")
    registry.put([a_registration(name=n) for n in "ab"])
    (mine,) = events.take(1)
    SqliteQueue(database, "1:init").take(1)
    events.release_orphans()
    assert [event.id for event in events.take(10)] == [mine.id]
