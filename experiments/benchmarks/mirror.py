"""The owner's mirror on planted faults: about 1,000 real capabilities, judged queries as traffic, 50 faults by rule.

A capability is planted with a fault only if half of its judged queries found it among the first five before, and counts
only if the fault costs it more than half of them: a fault that costs nothing cannot be seen in a log of use. False is
any cause named of a control: one of 50 that the seed draws of those without a fault that come first for half of their
judged queries or more.
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id, Kind
from mats.domain.capability.registration import Registration
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt
from mats.domain.profile.assignment import Assigned
from mats.domain.ranking.query import Query
from mats.evaluation.data.datasets import JudgedQuery, load, sample
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import index_changes, registry_of
from mats.local.preview.mirror import Cause, Mirror, MirrorQuery
from mats.settings import Settings
from mats.usecases.discover import LeaveReceipt

DEVELOPMENT, KEPT_BACK = (1, 2), (101, 102, 103)
"""Seeds that the rules were made with, and those that they had not seen."""
_SETS = {"tools": (300, 120), "models": (90, 40), "skills": (50, 60), "agents": (30, 70), "mcp-tools-closed": (46, 44)}
"""Capabilities with two or more judged queries, and others, of each set; the sample comes whole."""
_FIVE, _TRIED, _CONTROLS = 5, 20, 50
_PLANTED, _WANTED = 22, {Cause.SILENT: 13, Cause.KIND: 12, Cause.TWIN: 13, Cause.AUDIENCE: 12}
"""Faults planted of each kind, and those of them that count, the first with an effect."""
_REPORTS, _BY_KIND, _RESTRICTED = 0.3, 0.6, 30
"""Shares of answers with a report, and of requests with a filter of kinds; capabilities with an audience that asks."""
_BEFORE, _REGISTERED = "2026-06-01T00:00:00+00:00", "2026-06-02T00:00:00+00:00"
"""Times of the twins, of which every second one is rated, too, and of all others; none is new."""
_VAGUE = (
    "A powerful, flexible solution that helps teams get more done.",
    "Internal service. See the wiki.",
    "TODO",
    "Wrapper around the v2 endpoint, same as before but better.",
    "Provides seamless, best-in-class functionality for modern businesses.",
    "Does what its name says.",
    "",
    "Legacy component kept for compatibility; maintained by the platform group.",
)


@dataclass(frozen=True)
class World:
    """Registrations with what asks for them: each request with its gold, the kinds it is narrowed to and audiences."""

    registrations: Mapping[Id, Registration]
    requests: Sequence[tuple[JudgedQuery, tuple[Kind, ...], frozenset[str]]]

    @property
    def requests_by_gold(self) -> Mapping[Id, list[int]]:
        """The requests that have each capability as gold, by number."""
        found: dict[Id, list[int]] = defaultdict(list)
        for number, (query, _, _) in enumerate(self.requests):
            for id in query.relevant:
                found[id].append(number)
        return found


def make_world(data: Path, seed: int) -> World:
    draw, registrations, queries = random.Random(seed), dict[Id, Registration](), list[JudgedQuery]()
    for name, (with_queries, others) in _SETS.items():
        dataset = load(data / name)
        usable = [query for query in dataset.queries if len(query.relevant) <= 2 and len(query.text) < 2_000]
        asked = Counter(id for query in usable for id in query.relevant)
        known = {each.id: each for each in dataset.registrations}
        judged = sorted(id for id, times in asked.items() if times > 1 and id in known)
        chosen = draw.sample(judged, min(with_queries, len(judged)))
        rest = sorted(known.keys() - asked.keys())
        chosen += draw.sample(rest, min(others, len(rest)))
        registrations |= {id: known[id] for id in chosen}
        queries += usable
    registrations |= {each.id: each for each in sample().registrations}
    queries += sample().queries
    mine = [query for query in queries if query.relevant and query.relevant <= registrations.keys()]
    restricted = set(draw.sample(sorted(registrations), _RESTRICTED))  # rightly: those who ask for it may see it
    for id in restricted:
        registrations[id] = registrations[id].model_copy(update={"visible_to": ("staff",)})
    requests = []
    for query in mine:
        kinds = {registrations[id].kind for id in query.relevant}
        narrowed = tuple(kinds) if len(kinds) == 1 and draw.random() < _BY_KIND else ()
        audiences = frozenset({"staff"} if query.relevant & restricted or draw.random() < 0.3 else ())
        requests.append((query, narrowed, audiences))
    return World(registrations, requests)


def _silence(one: Registration, draw: random.Random) -> Registration:
    name = one.name if draw.random() < 0.5 else f"svc-{draw.randrange(16**4):04x}"
    return Registration(
        namespace=one.namespace, name=name, kind=one.kind, description=draw.choice(_VAGUE), endpoint=one.endpoint
    )


def _copy(one: Registration, draw: random.Random) -> Registration:
    return one.model_copy(update={"namespace": f"org.mirror-{draw.randrange(16**6):06x}"})


def _other_kind(one: Registration, draw: random.Random) -> Registration:
    return one.model_copy(update={"kind": draw.choice(sorted(set(Kind) - {one.kind}))})


def _hide(one: Registration, draw: random.Random) -> Registration:
    return one.model_copy(update={"visible_to": (draw.choice(("finance", "legal", "pilot")),)})


@contextmanager
def replayed(world: World, settings: Settings, seed: int, first: Sequence[Registration] = ()) -> Iterator[LocalSystem]:
    """A registry of a world, those of `first` registered before the others, after its requests were asked."""
    draw = random.Random(seed)
    encoder = cached_encoder(settings)
    with registry_of([], settings, encoder=encoder) as local:
        rest = [each for each in world.registrations.values() if each.id not in {one.id for one in first}]
        for registrations, time in ((first, _BEFORE), (rest, _REGISTERED)):
            for start in range(0, len(registrations), 64):
                batch = registrations[start : start + 64]
                local.stores.registry.put(batch)
                index_changes(local, [each.id for each in batch], time)
        for each in first[::2]:
            local.stores.trust.put(each.id, Assigned(trust=80))
            index_changes(local, [each.id])
        kept = _Kept()
        for query, kinds, audiences in world.requests:
            caller = f"caller-{draw.randrange(20)}"
            answer = local.discover(
                Query(query=query.text, kinds=kinds, limit=_FIVE),
                audiences,
                caller=caller,
                receipts=LeaveReceipt(later=kept),
            )
            used = next((result.id for result in answer.results if result.id in query.relevant), None)
            if used and draw.random() < _REPORTS:
                feedback = Feedback(query_id=answer.query_id, caller=caller, outcomes=(Outcome(used, Event.SUCCEEDED),))
                local.stores.outcomes.record(kept.receipts[-1], feedback, local.clock.now())
        local.stores.receipt_log.put_all(kept.receipts)
        yield local


class _Kept:
    """The port `Receipts`, in memory: storing each by itself would be most of the time."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []

    def put(self, receipt: Receipt) -> None:
        self.receipts.append(receipt)

    def get(self, query_id: str) -> Receipt | None:
        return next((each for each in self.receipts if each.query_id == query_id), None)


def places(local: LocalSystem, world: World) -> Mapping[Id, list[int | None]]:
    """Of each capability, its place in the answers to its requests, counted from 1."""
    stored = sorted(local.stores.receipt_log.since("", most=len(world.requests) + 1), key=lambda each: each.at)
    by_text: Mapping[str, Receipt] = {each.text: each for each in stored}
    found: dict[Id, list[int | None]] = {}
    for id, numbers in world.requests_by_gold.items():
        shown = [by_text[world.requests[number][0].text].shown for number in numbers]
        found[id] = [each.index(id) + 1 if id in each else None for each in shown]
    return found


def _share(values: Iterable[int | None], most: int) -> float:
    every = list(values)
    return sum(value is not None and value <= most for value in every) / len(every) if every else 0.0


def run_seed(data: Path, settings: Settings, seed: int) -> dict[str, Any]:
    """Plant, replay, and compare what the mirror names with what was planted."""
    draw, world = random.Random(f"faults {seed}"), make_world(data, seed)
    with replayed(world, settings, seed) as local:
        before = places(local, world)
    able = sorted(
        id
        for id, found in before.items()
        if len(found) > 1 and _share(found, _FIVE) >= 0.5 and world.registrations[id].visible_to is None
    )
    draw.shuffle(able)
    makers: Mapping[Cause, Callable[[Registration, random.Random], Registration]] = {
        Cause.SILENT: _silence, Cause.KIND: _other_kind, Cause.TWIN: _copy, Cause.AUDIENCE: _hide,
    }  # fmt: skip
    registrations, planted, twins, renamed = dict(world.registrations), dict[Id, Cause](), dict[Id, Registration](), {}
    for cause, make in makers.items():
        for _ in range(_PLANTED):
            id = able.pop()
            made = make(registrations[id], draw)
            if cause is Cause.TWIN:
                twins[id], planted[id] = made, cause
                registrations[made.id] = made
            else:
                del registrations[id]
                registrations[made.id], planted[made.id], renamed[id] = made, cause, made.id
    requests = [
        (replace(query, relevant=frozenset(renamed.get(id, id) for id in query.relevant)), kinds, audiences)
        for query, kinds, audiences in world.requests
    ]
    faulty = World(registrations, requests)
    with replayed(faulty, settings, seed, list(twins.values())) as local:
        after = places(local, faulty)
        effective: dict[Id, Cause] = {}
        for cause, count in _WANTED.items():
            hit = [id for id, of in planted.items() if of is cause and _costs(after[id], cause)]
            effective |= dict.fromkeys(hit[:count], cause)
        mirror = Mirror.over(local)
        began = time.perf_counter()
        named = {id: image.cause for id, image in mirror.images.items()}
        seconds = time.perf_counter() - began
        well = [
            id
            for id, found in after.items()
            if id not in planted and id not in {one.id for one in twins.values()} and _share(found, 1) >= 0.5
        ]
        controls = draw.sample(sorted(well), min(_CONTROLS, len(well)))
        lost = [id for id, cause in named.items() if cause in (Cause.SILENT, Cause.OUTRANKED)]
        rewrites = [mirror.answer(MirrorQuery(id=id))["rewrite"] for id in draw.sample(lost, min(_TRIED, len(lost)))]
    right = Counter(cause for id, cause in effective.items() if named[id] is cause)
    return {
        "seed": seed,
        "capabilities": len(registrations),
        "requests": len(requests),
        "planted": len(effective),
        "planted_without_effect": len(planted) - sum(_costs(after[id], cause) for id, cause in planted.items()),
        "named": right.total(),
        "named_by_cause": {
            str(cause): f"{right[cause]} of {count}" for cause, count in Counter(effective.values()).items()
        },
        "missed": Counter(f"{cause}, named {named[id]}" for id, cause in effective.items() if named[id] is not cause),
        "controls": len(controls),
        "false": sum(named[id] is not None for id in controls),
        "found_well": len(well),
        "false_of_found_well": sum(named[id] is not None for id in well),
        "false_as": Counter(str(named[id]) for id in well if named[id]),
        "others_named": Counter(str(cause) for id, cause in named.items() if cause and id not in planted),
        "seconds_to_name": round(seconds, 1),
        "rewrites": {
            "tried": len(rewrites),
            "with_a_gain": sum(one is not None for one in rewrites),
            **{name: sum(one[name] for one in rewrites if one) for name in ("found", "lost", "others")},
        },
    }


def _costs(found: Sequence[int | None], cause: Cause) -> bool:
    """Whether a fault costs a capability more than half of its requests: the five places, or the first by its twin."""
    return _share(found, 1 if cause is Cause.TWIN else _FIVE) < 0.5


def mirror(data: Path, settings: Settings) -> dict[str, Any]:
    """What the mirror names on seeds of development and on seeds that were kept back."""
    return {
        "development": [run_seed(data, settings, seed) for seed in DEVELOPMENT],
        "kept_back": [run_seed(data, settings, seed) for seed in KEPT_BACK],
    }
