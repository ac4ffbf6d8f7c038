"""A million capabilities, simulated: the real maintenance over stores of which a page, or a call, takes 30 ms."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mats.domain.capability.capability import Id
from mats.edge.maintenance import Maintenance
from mats.usecases.backfill import Backfill
from mats.usecases.reconcile import Reconcile
from mats.usecases.reindex import Reindex
from mats.usecases.resend import Resend
from tests.builders import a_registration
from tests.fakes import CountingIds, FakeClock, FakeEncoder
from tests.unit.edge.test_maintenance import TwoIndices
from tests.world import World

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
        backfill=Backfill(enrich=resend, pause=lambda seconds: None, **fake),
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
