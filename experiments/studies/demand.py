"""Demand: families of capabilities are removed, and their requests asked among others that are served.

A family is a capability that at least five judged queries ask for, with all that resemble it. It is *named* if at least
half of the requests of some gap are its own. A gap is *false* if most of its requests are served by the registry.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from experiments.report.cells import Section, Table, number, percent
from experiments.report.results import not_run_reason
from experiments.studies.context import Experiment, ExperimentContext
from mats.adapters.grouping import group_by_similarity
from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.learning.outcome import Event, Receipt, ReportedAnswer
from mats.domain.ranking.query import Query
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.results import Json
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.workbench import index_changes, registry_of, without_timeouts
from mats.usecases.find_demand import FindDemand
from mats.usecases.receipts import LeaveReceipt

_SETS = ("tools", "models", "skills", "agents", "mcp-tools-closed")
_SEEDS = (1, 2, 3)
_FAMILIES, _OTHERS, _CALLERS = 30, 1_000, 20
_LEAST_QUERIES, _MOST_QUERIES, _RESEMBLES = 5, 20, 0.5
_REPORTING = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of answers whose callers report."""
_MISTAKEN = 0.05
"""Share of reports that are wrong."""


class Family(NamedTuple):
    members: frozenset[Id]
    queries: Sequence[JudgedQuery]


@dataclass
class ReceiptsInMemory:
    """Receipts, and what callers report on some of them."""

    kept: dict[str, Receipt] = field(default_factory=dict)
    reports: Mapping[str, ReportedAnswer] = field(default_factory=dict)

    def put(self, receipt: Receipt) -> None:
        self.kept[receipt.query_id] = receipt

    def get(self, query_id: str) -> Receipt | None:
        return self.kept.get(query_id)

    def since(self, at: str, *, most: int) -> Sequence[Receipt]:
        return list(self.kept.values())[:most]

    def of(self, query_id: str) -> ReportedAnswer | None:
        return self.reports.get(query_id)

    def query_ids(self, *, after: str = "") -> Iterator[str]:
        yield from self.reports


def run(context: ExperimentContext) -> dict[str, Any]:
    """Named families and false gaps, by size of the registry, by share of callers that report, and over seeds."""
    names = [name for name in _SETS if name in context.sets]
    registrations = {each.id: each for name in names for each in context.dataset(name).registrations}
    queries = [query for name in names for query in context.dataset(name).queries]
    served = [query for query in queries if query.relevant <= registrations.keys()]
    settings, encoder = context.models.offline, context.models.encoder
    if encoder is None:
        return {"not_run": context.models.lacking({"encoder"})}
    rows: dict[str, list[dict[str, Any]]] = {"large": [], "small": []}
    context.log(f"demand: registering {len(registrations):,} capabilities")
    with registry_of(list(registrations.values()), settings, encoder=encoder) as local:
        vectors = _vectors(local, list(registrations))
        for seed in _SEEDS:
            families = choose_families(served, vectors, random.Random(seed))
            others = _others(served, families, random.Random(seed))
            context.log(f"demand: seed {seed}: {len(families)} families, {len(others):,} others")
            removed = frozenset[Id]().union(*(family.members for family in families))
            with _without(local, [registrations[id] for id in sorted(removed)]):
                rows["large"] += _measure(local, families, others, seed)
            needed = sorted({id for query in others for id in query.relevant} - removed)
            with registry_of([registrations[id] for id in needed], settings, encoder=encoder) as small:
                rows["small"] += _measure(small, families, others, seed)
    return {
        "sets": names,
        "families": _FAMILIES,
        "others": _OTHERS,
        "mistaken_reports": _MISTAKEN,
        "registries": {size: {"rows": found, "mean": _means(found)} for size, found in rows.items()},
    }


def choose_families(
    queries: Sequence[JudgedQuery], vectors: Mapping[Id, npt.NDArray[np.float32]], rng: random.Random
) -> list[Family]:
    """A seeded sample of families without common members or queries; those of a family's size alone are its own."""
    asking: dict[Id, list[JudgedQuery]] = {}
    for query in queries:
        for id in query.relevant:
            asking.setdefault(id, []).append(query)
    ids = sorted(vectors)
    matrix = np.stack([vectors[id] for id in ids])
    seeds = sorted(id for id, asked in asking.items() if id in vectors and len(asked) >= _LEAST_QUERIES)
    rng.shuffle(seeds)
    families: list[Family] = []
    taken: set[Id] = set()
    for id in seeds:
        like = frozenset(ids[n] for n in np.flatnonzero(matrix @ vectors[id] >= _RESEMBLES)) | {id}
        own = {query.id: query for each in like for query in asking.get(each, ()) if query.relevant <= like}
        if len(own) >= _LEAST_QUERIES and not like & taken and len(families) < _FAMILIES:
            families.append(Family(like, sorted(own.values(), key=lambda query: query.id)[:_MOST_QUERIES]))
            taken |= like
    return families


def _others(queries: Sequence[JudgedQuery], families: Sequence[Family], rng: random.Random) -> list[JudgedQuery]:
    removed = frozenset[Id]().union(*(family.members for family in families))
    left = [query for query in queries if not query.relevant & removed]
    return rng.sample(left, min(_OTHERS, len(left)))


def _vectors(local: LocalSystem, ids: Sequence[Id]) -> dict[Id, npt.NDArray[np.float32]]:
    found = local.stores.profiles.get(ids)
    rows = {id: np.asarray(stored.vector, dtype=np.float32) for id, stored in found.items() if stored.vector}
    return {id: row / np.linalg.norm(row) for id, row in rows.items()}


@contextmanager
def _without(local: LocalSystem, removed: Sequence[Registration]) -> Iterator[None]:
    """The registry without some registrations, for the length of a `with` block."""
    ids = [each.id for each in removed]
    for id in ids:
        local.stores.registry.remove(id)
    index_changes(local, ids)
    yield
    local.stores.registry.put(removed)
    index_changes(local, ids)


def _measure(
    local: LocalSystem, families: Sequence[Family], others: Sequence[JudgedQuery], seed: int
) -> list[dict[str, Any]]:
    """Ask everything once; then find the demand for each share of callers that report."""
    receipts, rng = ReceiptsInMemory(), random.Random(seed)
    discover, leave = without_timeouts(local.discover), LeaveReceipt(later=receipts)
    asked = [(number, query) for number, family in enumerate(families) for query in family.queries]
    family_of: dict[str, int | None] = {}
    for family_number, query in [*asked, *((None, query) for query in others)]:
        caller = f"caller {rng.randrange(_CALLERS)}"
        answer = discover(Query(query=query.text[:LONGEST_QUERY]), caller=caller, receipts=leave)
        family_of[answer.query_id] = family_number
    unmatched = Counter(receipts.kept[id].verdict != "match" for id, number in family_of.items() if number is not None)
    registered = sum(1 for _ in local.stores.registry.ids())
    rows = []
    for share in _REPORTING:
        log = replace(receipts, reports=_report(receipts.kept, family_of, share, random.Random(seed)))
        find = FindDemand(receipts=log, outcomes=log, index=local.stores.index, group=group_by_similarity)  # type: ignore[arg-type]
        gaps = [[family_of[id] for id in gap.query_ids] for gap in find("").gaps]
        rows.append(
            {
                "seed": seed,
                "reporting": share,
                "capabilities": registered,
                "requests": len(family_of),
                "of_families": len(asked),
                "unmatched": round(unmatched[True] / max(1, len(asked)), 3),
                **count_gaps(gaps),
            }
        )
    return rows


def _report(
    kept: Mapping[str, Receipt], family_of: Mapping[str, int | None], share: float, rng: random.Random
) -> dict[str, ReportedAnswer]:
    """Simulate reports on the first results: `wrong` where the registry has nothing, `succeeded` elsewhere."""
    reports = {}
    for id, receipt in kept.items():
        reported, mistaken = rng.random() < share, rng.random() < _MISTAKEN
        if reported and receipt.shown:
            served = (family_of[id] is None) != mistaken
            events = {receipt.shown[0]: frozenset({Event.SUCCEEDED if served else Event.WRONG})}
            reports[id] = ReportedAnswer(receipt=receipt, events=events)
    return reports


def count_gaps(gaps: Sequence[Sequence[int | None]]) -> dict[str, int]:
    """Gaps, named families and false gaps, from the family of each request of each gap; None: of none."""
    named = {
        family for gap in gaps for family, count in Counter(gap).items() if family is not None and 2 * count >= len(gap)
    }
    false = sum(2 * sum(family is None for family in gap) > len(gap) for gap in gaps)
    return {"gaps": len(gaps), "named": len(named), "false": false}


def _means(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Over seeds: the share of the families named, and of the gaps that are false."""
    means = []
    for share in _REPORTING:
        chosen = [row for row in rows if row["reporting"] == share]
        gaps = sum(row["gaps"] for row in chosen)
        named = sum(row["named"] for row in chosen) / (_FAMILIES * len(chosen))
        false = sum(row["false"] for row in chosen) / gaps if gaps else 0.0
        means.append({"reporting": share, "named": round(named, 3), "false": round(false, 3)})
    return means


def section(results: Json, paper: Json) -> Section:
    ran = not not_run_reason(results)
    return Section(
        id="demand",
        title="Demand",
        summary="Families of capabilities are removed from a registry, a large one and one of what the other requests "
        "need, and their requests asked among others that the rest serves. A family is named if at least half of the "
        "requests of some group are its own; a group is false if most of its requests are served. Some callers report "
        "what became of an answer.",
        tables=(_shares(results),) if ran else (),
    )


def _shares(results: Json) -> Table:
    wrong = percent(results["mistaken_reports"])
    return Table(
        id="demand-shares",
        caption="Families named and groups that are false, by the share of callers that report, %",
        head=("registry", "capabilities", "report", "named", "false"),
        rows=tuple(row for name, one in results["registries"].items() for row in _rows(name, one)),
        notes=(
            f"{results['families']} families among {number(results['others'])} other requests, over several choices "
            f"of families; {wrong} % of the reports are wrong.",
        ),
    )


def _rows(name: str, registry: Json) -> Iterator[tuple[str, ...]]:
    sizes = [row["capabilities"] for row in registry["rows"]]
    for mean in registry["mean"]:
        yield name, number(sum(sizes) / len(sizes)), *map(percent, (mean["reporting"], mean["named"], mean["false"]))


EXPERIMENTS = (Experiment(name="demand", place=150, run=run, section=section),)
