"""Maintenance in pieces, over fakes: each output is the next input, until it is done; and over a million, simulated."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic import ValidationError

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, Fault, NotPossible
from mats.domain.learning.outcome import Feedback, Receipt
from mats.domain.profile.profile import Cause
from mats.edge.maintenance import PACE_S, RESERVE_MS, Maintenance
from mats.local.log import record_fields
from mats.ports import Change, Target
from mats.usecases.backfill import Backfill
from mats.usecases.reconcile import Reconcile
from mats.usecases.reindex import Reindex
from mats.usecases.resend import Resend
from tests.builders import a_registration
from tests.fakes import CountingIds, FakeClock, FakeEncoder, raising
from tests.learning import MemoryOutcomes
from tests.unit.usecases.test_reindex import Shelves
from tests.world import World

PLENTY_MS, LITTLE_MS = RESERVE_MS + 1, RESERVE_MS - 1
REGISTRATIONS = [a_registration(name=f"tool-{n}", description=f"sends money by way {n}") for n in range(7)]
IDS = [registration.id for registration in REGISTRATIONS]


@dataclass
class TwoIndices(Shelves):
    """One index that answers, and one that is filled."""

    retired: bool = False

    def current(self) -> str:
        return super().current() or "old"

    def roll_back(self) -> Target:
        if not self.promoted:
            raise NotPossible([Fault("", "there is no index before old")])
        self.promoted.clear()
        return Target("old", "")

    def retire(self) -> Sequence[str]:
        self.retired = True
        return ["old"]


class Account:
    """Maintenance over fakes; what it sends is enriched as the event path would, unless that is `down`."""

    def __init__(self, *, page: int = 2) -> None:
        self.world = world = World(encoder=FakeEncoder())
        self.sent: list[Id] = []
        self.generations = TwoIndices()
        self.followed = 0
        resend = Resend(
            registry=world.registry, trust=world.trust, profiles=world.profiles, maker=world.enrich.maker,
            send=self.sent.extend,
        )  # fmt: skip
        clock, ids = FakeClock(), CountingIds()
        self.maintenance = Maintenance(
            reconcile=Reconcile(
                enrich=resend, registry=world.registry, profiles=world.profiles, index=world.index, clock=clock,
                ids=ids, page=page,
            ),
            reindex=Reindex(profiles=world.profiles, generations=self.generations, page=page),
            backfill=Backfill(enrich=resend, clock=clock, ids=ids,
                page=page),
            registry=world.registry,
            generations=self.generations,
            tidy=self._follow,
        )  # fmt: skip

    def _follow(self) -> None:
        self.followed += 1

    def deliver(self) -> None:
        """The event path does what was sent."""
        self.world.enrich([Change(id, Cause(event_id="e", time="2026-01-01T00:00:00+00:00")) for id in self.sent])
        self.sent.clear()

    def pieces(self, event: dict[str, Any], *, left_ms: float = LITTLE_MS) -> list[dict[str, Any]]:
        """Every output until it is done, by way of JSON."""
        outputs = []
        while not outputs or not outputs[-1]["done"]:
            event = json.loads(json.dumps(self.maintenance(event, lambda: left_ms)))
            outputs.append(event)
        return outputs


def registered() -> Account:
    account = Account()
    for registration in REGISTRATIONS:
        account.world.register(registration)
    return account


@pytest.mark.parametrize(("left_ms", "pieces"), [(PLENTY_MS, 1), (LITTLE_MS, 3 * 4)])
def test_an_empty_index_is_filled_in_as_many_pieces_as_the_time_allows(left_ms: float, pieces: int):
    account = registered()
    account.world.index.entries.clear()
    outputs = account.pieces({"task": "reconcile"}, left_ms=left_ms)
    assert account.world.found("money") == IDS
    assert len(outputs) == pieces + (pieces > 1)  # the last one finds nothing left
    assert outputs[-1]["counts"] == {"compared": 7, "sent": 0, "reindexed": 7, "orphans": 0, "purged": 0, "given_up": 0}
    assert account.sent == []


def test_a_piece_that_fails_is_repeated_from_where_it_began(monkeypatch: pytest.MonkeyPatch):
    account = registered()
    account.world.index.entries.clear()
    first = account.maintenance({"task": "reconcile"}, lambda: LITTLE_MS)
    with monkeypatch.context() as broken:
        broken.setattr(account.world.index, "put", raising(DependencyFailed("the domain is away")))
        with pytest.raises(DependencyFailed):
            account.maintenance(first, lambda: LITTLE_MS)
    assert account.pieces(first)[-1]["done"]
    assert account.world.found("money") == IDS


@pytest.mark.parametrize("left_ms", [PLENTY_MS, LITTLE_MS])
def test_it_settles_once_when_everything_is_compared(left_ms: float):
    account = registered()
    account.pieces({"task": "reindex"})
    assert account.followed == 0
    account.pieces({"task": "reconcile"}, left_ms=left_ms)
    assert account.followed == 1


def test_going_back_and_retiring_are_one_piece_each():
    account = registered()
    with pytest.raises(NotPossible):
        account.pieces({"task": "rollback"})
    account.pieces({"task": "reindex"})
    assert [output["index"] for output in account.pieces({"task": "rollback"})] == ["old"]
    assert [output["done"] for output in account.pieces({"task": "retire"})] == [True]
    assert account.generations.retired


def test_a_backfill_sends_what_is_allowed_and_waits_outside_the_function():
    account = Account(page=5)
    account.world.registry.put([a_registration(name=f"tool-{n:02}") for n in range(18)])
    outputs = account.pieces({"task": "backfill", "per_minute": 2}, left_ms=PLENTY_MS)
    assert [output["wait_s"] for output in outputs] == [PACE_S, 0]
    assert [output["counts"]["sent"] for output in outputs] == [10, 18]
    assert sorted(account.sent) == list(account.world.registry.ids())


def test_every_reported_answer_is_sent_to_learning_once_in_pieces():
    account, sent, outcomes = Account(), list[str](), MemoryOutcomes()
    answers = [f"answer-{n:03}" for n in range(250)]
    for query_id in answers:
        receipt = Receipt(query_id=query_id, text="", caller="ann", audiences=frozenset(), at="", shown=())
        outcomes.record(receipt, Feedback(query_id=query_id, caller="ann", outcomes=()))
    account.maintenance = replace(account.maintenance, outcomes=outcomes, send_reports=sent.extend)
    outputs = account.pieces({"task": "relearn"})
    assert sent == answers
    assert [output["after"] for output in outputs] == ["answer-099", "answer-199", "answer-249", "answer-249"]
    assert outputs[-1]["counts"] == {"sent": 250}


@pytest.mark.parametrize("event", [{}, {"task": "destroy"}, {"task": "backfill", "per_minute": 0}])
def test_what_is_no_task_is_refused(event: dict[str, Any]):
    with pytest.raises(ValidationError):
        Account().pieces(event)


def test_every_piece_is_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "mats")
    registered().pieces({"task": "reconcile"}, left_ms=PLENTY_MS)
    (record,) = [record_fields(one) for one in caplog.records if one.message == "maintained"]
    assert (record["task"], record["done"], record["counts"]["compared"]) == ("reconcile", True, 7)


MILLION, PAGE, PAGES = 1_000_000, 64, 20
"""Each simulated capability stands for PAGES pages of PAGE capabilities, and its calls take as long as theirs."""
CALL_S, TIMEOUT_S, PIECE_S = 0.03, 900, 13 * 60
SCANNED_KB = {"registry": 3, "profiles": 30}
"""Of a capability, its versions included as in infra/bill.json; a scan reads 1 MB a page."""
LISTED = 5_000  # Ids in a page of the index


class Clock:
    """The time that calls have taken."""

    def __init__(self) -> None:
        self.now_s, self.began_s = 0.0, 0.0

    def take(self, calls: float) -> None:
        self.now_s += calls * CALL_S * PAGES

    def left_ms(self) -> float:
        return 1000 * (TIMEOUT_S - (self.now_s - self.began_s))


class Slow:
    """A store whose calls, and pages of ids, take their time."""

    def __init__(self, store: Any, clock: Clock, pages_listed: float) -> None:
        self._store, self._clock, self._pages_listed = store, clock, pages_listed

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            if not given or given[0]:  # nothing to write is no call
                self._clock.take(1)
            return getattr(self._store, name)(*given, **named)

        return call

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        for id in self._store.ids(after=after):
            self._clock.take(self._pages_listed)
            yield id


def a_million() -> tuple[World, Clock, Maintenance]:
    world, clock = World(encoder=FakeEncoder()), Clock()
    for number in range(MILLION // (PAGE * PAGES)):
        world.register(a_registration(name=f"tool-{number:06}", description="moves money"))
    scans = {place: PAGE * kb / 1000 for place, kb in SCANNED_KB.items()}
    registry, profiles = (Slow(getattr(world, place), clock, scans[place]) for place in scans)
    trust, index = Slow(world.trust, clock, 0), Slow(world.index, clock, PAGE / LISTED)
    sent: list[Id] = []
    resend: Any = Resend(
        registry=registry, trust=trust, profiles=profiles, maker=world.enrich.maker, send=sent.extend
    )  # fmt: skip
    fake: dict[str, Any] = {"clock": FakeClock(), "ids": CountingIds(), "page": 1}
    generations = TwoIndices()
    return world, clock, Maintenance(
        reconcile=Reconcile(enrich=resend, registry=registry, profiles=profiles, index=index, **fake),
        reindex=Reindex(profiles=profiles, generations=Slow(generations, clock, 0), page=1),
        backfill=Backfill(enrich=resend, **fake),
        registry=registry,
        generations=generations,
    )  # fmt: skip


@pytest.mark.parametrize("task", ["reconcile", "refill", "reindex"])
def test_a_million_capabilities_are_worked_through_in_pieces_from_the_first_minute_on(task: str):
    world, clock, maintenance = a_million()
    if task == "refill":  # of a domain that was replaced
        world.index.entries.clear()
    event: dict[str, Any] = {"task": "reindex" if task == "reindex" else "reconcile"}
    begun_s = list[float]()
    put = world.index.put
    world.index.put = lambda entries: (begun_s.append(clock.now_s), put(entries))[1]  # type: ignore[method-assign]
    while not event.get("done"):
        clock.began_s = clock.now_s
        event = json.loads(json.dumps(maintenance(event, clock.left_ms)))
        assert clock.now_s - clock.began_s <= PIECE_S + 10, "a page longer than the reserve is for"
    count = MILLION // (PAGE * PAGES)
    if task == "reindex":
        assert event["counts"] == {"profiles": count, "written": count}
    else:
        assert (event["counts"]["compared"], event["counts"]["sent"]) == (count, 0)
        assert event["counts"]["reindexed"] == (count if task == "refill" else 0)
    if task == "refill":
        assert min(begun_s) < 10
        assert len(world.index.entries) == count
