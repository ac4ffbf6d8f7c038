"""Five hundred items, written while functions die, services fail and the domain is lost: at the end all is as written.

Nobody runs a command: what mends is what the stack starts by itself.
"""

import random
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.aws.calls import Call, Service
from tests.aws.event_path import Chaos
from tests.aws.recorder import Act, Cut, Hook, Refuse, Stall, every, nth
from tests.aws.state_machine import ExecutionFailed
from tests.path.world import Environment, Make, World, item

pytestmark = [pytest.mark.server]

ITEMS = 500
AT_A_TIME = 12  # operations between two batches
SEED = 20
WORDS = "amber birch cedar delta ember fjord glade heron islet joule karst lemur maple nadir ochre pylon".split()
THROTTLED = {"dynamodb": "ProvisionedThroughputExceededException", "bedrock": "ThrottlingException"}


@dataclass
class Book:
    """What people have written, and so what must be found."""

    live: dict[str, dict[str, Any]] = field(default_factory=dict)  # What is there now and can be registered
    bad: set[str] = field(default_factory=set)  # What is there now and cannot
    trust: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    rev: int = 0


class People:
    """Owners and operators who write at random."""

    def __init__(self, world: World, seed: int) -> None:
        self.book = Book()
        self._world, self._random = world, random.Random(seed)

    def write(self, times: int) -> None:
        """Do so many things."""
        for _ in range(times):
            name = f"item-{self._random.randrange(ITEMS):03d}"
            act = self._random.choices((self._put, self._remove, self._put_bad, self._trust), (60, 22, 8, 10))[0]
            act(name)

    def _put(self, name: str) -> None:
        book = self.book
        book.rev += 1
        words = " ".join(self._random.sample(WORDS, 3))
        written = item(
            name, f"Handles {name.replace('-', '')} revision r{book.rev}x of {words}.", version=str(book.rev)
        )
        id = self._world.put(written)
        book.live[id] = written
        book.bad.discard(id)
        book.gone.discard(id)

    def _put_bad(self, name: str) -> None:
        id = self._world.put({"namespace": "com.acme", "name": name, "kind": "tool", "colour": "red", "tags": "one"})
        self.book.bad.add(id)
        self.book.live.pop(id, None)
        self.book.gone.discard(id)

    def _remove(self, name: str) -> None:
        id = f"com.acme/{name}"
        self._world.remove(id)
        if id in self.book.live or id in self.book.bad:
            self.book.gone.add(id)
        self.book.live.pop(id, None)
        self.book.bad.discard(id)

    def _trust(self, name: str) -> None:
        id = f"com.acme/{name}"
        value = self._random.choice([None, *range(0, 101, 10)])
        self._world.trust(id, value)
        self.book.trust.pop(id, None)
        if value is not None:
            self.book.trust[id] = value


class Storm:
    """Spoils some of the calls of a function."""

    def __init__(self, seed: int, share: float, acts: Sequence[Callable[[Call], Act]], service: Service | None) -> None:
        self._random, self._share, self._acts, self._service = random.Random(seed), share, acts, service
        self.struck = 0

    def __call__(self, call: Call) -> Act | None:
        """The outcome of a call."""
        if self._service not in (None, call.service) or self._random.random() >= self._share:
            return None
        self.struck += 1
        return self._random.choice(self._acts)(call)


FAULTS: list[Callable[[Call], Act]] = [
    lambda call: Refuse(500, "InternalServerError"),
    lambda call: Refuse(400 if call.service == "dynamodb" else 429, THROTTLED.get(call.service, "rejected")),
    lambda call: Cut(),
    lambda call: Cut(after=True),
    lambda call: Stall(0.1),
]


def _storm(world: World, seed: int, share: float, service: Service | None = None) -> list[Storm]:
    storms = []
    for number, each in enumerate(world.offline):
        storms.append(Storm(seed + number, share, FAULTS, service))
        each.weather = storms[-1]
    return storms


def _killing(world: World, seed: int, share: float) -> list[Storm]:
    return _kill(world.offline, seed, share)


def _kill(environments: Sequence[Environment], seed: int, share: float) -> list[Storm]:
    storms = []
    for number, each in enumerate(environments):
        acts: list[Callable[[Call], Act]] = [
            lambda call, function=each.function: Hook(function.kill),  # type: ignore[misc]
            lambda call, function=each.function: Hook(function.kill, after=True),  # type: ignore[misc]
        ]
        storm = Storm(seed + number, share, acts, None)
        storms.append(storm)
        each.weather = lambda call, storm=storm: storm(call) if call.writes else None  # type: ignore[misc]
    return storms


Weather = Callable[[World], list[Storm]]
ROUNDS: dict[str, tuple[int, Weather]] = {  # batches at least; a round goes on until a fault has struck
    "calm": (8, lambda world: []),
    "functions die": (18, lambda world: _killing(world, 1, 0.02)),
    "DynamoDB fails now and then": (15, lambda world: _storm(world, 3, 0.02, "dynamodb")),
    "DynamoDB is down": (2, lambda world: _storm(world, 5, 1.0, "dynamodb")),
    "OpenSearch fails now and then": (15, lambda world: _storm(world, 7, 0.2, "opensearch")),
    "OpenSearch is down": (4, lambda world: _storm(world, 9, 1.0, "opensearch")),
    "Bedrock fails now and then": (15, lambda world: _storm(world, 11, 0.15, "bedrock")),
    "Bedrock is down": (3, lambda world: _storm(world, 13, 1.0, "bedrock")),
    "EventBridge is down": (3, lambda world: _storm(world, 15, 1.0, "events")),
    "everything fails now and then": (15, lambda world: _storm(world, 17, 0.02)),
    "functions die again": (10, lambda world: _killing(world, 19, 0.02)),
}


@pytest.mark.long(slice="chaos")
def test_whatever_happens_every_item_ends_as_it_was_last_written_without_a_person(made: Make) -> None:
    world = made(chaos=Chaos(SEED), environments=2, timeout_s=60)
    people = People(world, SEED)
    struck = {}
    with ThreadPoolExecutor(2) as side_by_side:
        for name, (batches, weather) in ROUNDS.items():
            storms = weather(world)
            for number in range(10 * batches):
                if number >= batches and (name == "calm" or any(storm.struck for storm in storms)):
                    break
                people.write(AT_A_TIME)
                world.path.pump()
                handed = [side_by_side.submit(_deliver, world, side) for side in range(2)]
                people.write(AT_A_TIME // 4)  # while they read
                for each in handed:
                    each.result()
            world.weather(None)
            struck[name] = sum(storm.struck for storm in storms)
    for each in world.offline:
        each.recorder.settle()
    assert [name for name in ROUNDS if name != "calm" and not struck[name]] == []

    _give_everything_up(world)
    given_up = world.path.waiting()["mats-enrichment-dead"]
    world.drop_indices()
    _kill([world.repair], 21, 0.1)
    with suppress(ExecutionFailed):  # then the next night has more to do
        world.deployed()
    assert world.execution.retried > 0
    world.weather(None)
    world.settle()
    world.path.repeat(200)
    world.settle()
    (output,) = world.night()
    world.settle()

    assert output["done"]
    assert world.path.waiting() == {"mats-enrichment-dead": given_up}
    _assert_as_written(world, people.book)
    assert world.night()[0]["counts"] == {
        "compared": len(world.profiles()), "sent": 0, "reindexed": 0, "orphans": 0, "purged": 0, "given_up": 0,
    }  # fmt: skip


def _give_everything_up(world: World) -> None:
    """Let every message that waits fail until it is in a dead-letter queue."""
    world.offline[0].weather = every(Refuse(400, "ResourceNotFoundException"), service="dynamodb")
    world.settle()
    assert list(world.path.waiting()) == ["mats-enrichment-dead"]
    world.weather(None)


def _deliver(world: World, environment: int) -> None:
    world.path.deliver(lambda event: world.enrich(event, environment=environment))


def _assert_as_written(world: World, book: Book) -> None:
    profiles = world.profiles()
    entries = world.indexed()
    by_id = {entry["id"]: entry for entry in entries}
    assert len(book.live) > ITEMS / 3
    assert len(book.bad) > 10
    assert len(book.gone) > 10
    assert len(entries) == len(by_id) == len(profiles)
    assert {id for id in by_id if by_id[id]["findable"]} >= book.live.keys()

    held = {id for id in book.live if profiles[id]["status"] == "held"}
    assert len(held) < len(book.live) / 3
    shown = {id: book.live[id] for id in book.live.keys() - held}
    for id in held:  # a rated one whose text moved too far shows what was approved, until an operator decides
        assert id in book.trust
        profile = profiles[id]
        assert int(profile["version"]) < int(book.live[id]["version"])
        shown[id] = {"version": profile["version"], "description": profile["enrichment"]["summary"]}
    for id, written in shown.items():
        profile, entry = profiles[id], by_id[id]
        assert (profile["status"], profile["error"]) == ("held" if id in held else "active", "")
        assert profile["enriched"] is True
        assert (profile["version"], profile["enrichment"]["summary"]) == (written["version"], written["description"])
        assert profile.get("trust") == book.trust.get(id)
        assert isinstance(profile["vector"], bytes)
        assert profile["rev"] == profile["indexed_rev"] == entry["rev"]
        assert entry["profile"]["version"] == written["version"]
    for id in book.bad:
        assert profiles[id]["status"] == "rejected"
        assert "colour" in profiles[id]["error"]
        assert "tags" in profiles[id]["error"]
        assert profiles[id]["rev"] == by_id[id]["rev"]
    for id in profiles.keys() - book.live.keys() - book.bad:
        assert id in book.gone
        assert profiles[id]["status"] == "deleted"
        assert by_id[id]["findable"] is False

    heard = {(event["detail"]["id"]) for event in world.path.events if event["detail-type"] == "CapabilityRejected"}
    assert book.bad <= heard
    for id, written in shown.items():
        own_words = re.findall(r"item\d+|r\d+x", written["description"])
        found = world.discover(" ".join(own_words), limit=15).content["results"]
        assert [(each["version"], each["summary"]) for each in found if each["id"] == id] == [
            (written["version"], written["description"])
        ]
        assert found[0]["id"] == id
        assert not book.gone & {each["id"] for each in found}
    for id in book.gone:
        assert id not in world.discover(f"Handles {id.partition('/')[2].replace('-', '')}", limit=15).ids
        assert world.look_up(id).status == 404


@pytest.mark.parametrize(("service", "operation"), [("dynamodb", None), ("bedrock", "converse")])
def test_a_run_that_is_out_of_time_because_a_service_is_silent_is_made_good_by_the_next(
    made: Make, service: Service, operation: str | None
) -> None:
    world = made(timeout_s=4)
    ids = [world.put(item(f"item-{number}", f"Handles item{number}.")) for number in range(3)]
    world.weather(every(Stall(60), service=service, operation=operation))
    world.path.pump()
    world.path.deliver(world.enrich)
    assert list(world.path.waiting()) == ["mats-changes"]
    assert (world.offline[0].function.pid is None) is (service != "bedrock")  # it hands back what waits for a model
    if service == "bedrock":
        world.refresh()
        assert {entry["id"] for entry in world.indexed()} == set(ids)

    world.weather(None)
    world.settle()
    assert world.path.waiting() == {}
    assert all((world.profile(id) or {})["enriched"] for id in ids)


def test_one_silent_call_to_a_table_is_asked_again_in_the_same_run(world: World) -> None:
    id = world.put(item("refund_payment", "Refunds a card payment."))
    world.offline[0].weather = nth(2, Stall(60), service="dynamodb")
    world.path.pump()
    world.path.deliver(world.enrich)
    assert world.path.waiting() == {}
    assert (world.profile(id) or {})["enriched"] is True


@pytest.mark.parametrize(
    ("service", "status", "degraded"),
    [
        ("bedrock", 200, ["llm", "neural"]),
        ("dynamodb", 200, ["audiences", "receipt", "reliability"]),
        ("opensearch", 503, None),
    ],
)
def test_while_a_service_is_silent_an_answer_says_what_it_lacks(
    world: World, service: Service, status: int, degraded: list[str] | None
) -> None:
    id = world.publish(item("refund_payment", "Refunds a card payment."))
    world.online.weather = every(Stall(60), service=service)
    reply = world.discover("refunds a card payment")
    assert reply.status == status, reply.content
    if degraded is None:
        assert reply.headers["Retry-After"] == "1"
    else:
        assert reply.ids == [id]
        assert {*degraded} <= {*reply.content["degraded"]} <= {*degraded, "receipt"}  # late on a busy machine
    world.online.weather = None
    assert world.discover("refunds a card payment").ids == [id]
