"""The values of the same requests with a policy and without it, and whether the policy may stay."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.search.query import Query
from mats.domain.search.shortlist import Shortlist
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.workbench import without_policies
from mats.ports import Clock
from mats.usecases.discover import Discover


class Part(StrEnum):
    """The purpose of a comparison."""

    FIRST = "first"  # Labelled queries with a right first result: a policy may lose none on balance
    AMONG = "among"  # Labelled queries with a right one among the candidates
    OWN = "own"  # What the policy is for: it must gain
    ATTACK = "attack"  # Answers under attack, whichever policy is made for it
    SILENT = "silent"  # What it must not harm: it may lose none on balance
    PRICE = "price"  # What it is known to cost


class Comparison(NamedTuple):
    """Sums over requests of a value, more being better, with a policy and without it.

    `gained` is by how much the value is higher with it, summed over the requests where it is, and `lost` the reverse.
    """

    policy: str
    part: Part
    what: str
    set: str
    requests: int
    with_: float
    without: float
    gained: float
    lost: float

    def to_json(self) -> dict[str, Any]:
        return {("with" if name == "with_" else name): value for name, value in self._asdict().items()}


def compare(policy: str, part: Part, what: str, name: str, pairs: Iterable[tuple[float, float]]) -> Comparison:
    """The comparison of pairs of values, each with the policy and without it."""
    pairs = list(pairs)
    differences = [one - other for one, other in pairs]
    sums = sum(one for one, _ in pairs), sum(other for _, other in pairs)
    gained, lost = sum(each for each in differences if each > 0), -sum(each for each in differences if each < 0)
    return Comparison(policy, part, what, name, len(pairs), *(round(each, 3) for each in (*sums, gained, lost)))


Value: TypeAlias = Callable[[JudgedQuery, Sequence[Id]], float]


def is_first(query: JudgedQuery, ranked: Sequence[Id]) -> float:
    return float(not query.relevant.isdisjoint(ranked[:1]))


def is_among(query: JudgedQuery, ranked: Sequence[Id]) -> float:
    return float(not query.relevant.isdisjoint(ranked))


def share_in_five(query: JudgedQuery, ranked: Sequence[Id]) -> float:
    return len(query.relevant & {*ranked[:5]}) / len(query.relevant)


def is_in_five(query: JudgedQuery, ranked: Sequence[Id]) -> float:
    return float(not query.relevant.isdisjoint(ranked[:5]))


@dataclass(frozen=True, slots=True)
class Arms:
    """A pipeline with all of its policies, and without each of some."""

    whole: Discover
    without: Mapping[str, Discover]

    @classmethod
    def of(cls, discover: Discover, policies: Iterable[str]) -> "Arms":
        return cls(discover, {name: without_policies(discover, [name]) for name in policies})

    def only(self, *policies: str) -> "Arms":
        """The same with fewer policies."""
        return Arms(self.whole, {name: arm for name, arm in self.without.items() if name in policies})

    def at(self, clock: Clock) -> "Arms":
        """The same at another time."""

        def moved(pipeline: Discover) -> Discover:
            return replace(pipeline, stages=replace(pipeline.stages, clock=clock))

        return Arms(moved(self.whole), {name: moved(arm) for name, arm in self.without.items()})

    def ask(self, query: JudgedQuery, *, caller: str = "", **fields: Any) -> "Asked":
        """The ranked ids of every arm; the vector of the request is encoded once."""
        asked = Query.parse({"query": query.text[:LONGEST_QUERY], **fields})
        arms = {name: ranked_ids(arm.answer(asked, caller=caller)) for name, arm in self.without.items()}
        return Asked(query, ranked_ids(self.whole.answer(asked, caller=caller)), arms)


def ranked_ids(shortlist: Shortlist) -> tuple[Id, ...]:
    """The ids of all candidates, best first."""
    return tuple(result.id for result in shortlist.ranked)


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers to one request, of the whole pipeline and of each arm by the policy that it lacks."""

    query: JudgedQuery
    whole: tuple[Id, ...]
    without: Mapping[str, tuple[Id, ...]]

    def values(self, policy: str, value: Value) -> tuple[float, float]:
        return value(self.query, self.whole), value(self.query, self.without[policy])


def compare_all(asked: Sequence[Asked], part: Part, what: str, name: str, value: Value = is_first) -> list[Comparison]:
    """The comparison of every arm over the same requests."""
    policies = asked[0].without if asked else ()
    return [compare(policy, part, what, name, (each.values(policy, value) for each in asked)) for policy in policies]


def labelled(asked: Sequence[Asked], name: str) -> list[Comparison]:
    """The comparisons of judged queries."""
    return [
        *compare_all(asked, Part.FIRST, "judged queries", name),
        *compare_all(asked, Part.AMONG, "judged queries", name, is_among),
    ]


@dataclass(frozen=True, slots=True)
class Row:
    """All comparisons of one policy."""

    policy: str
    comparisons: Sequence[Comparison]

    def total(self, part: Part) -> dict[str, float]:
        """Requests and sums over all comparisons of a part."""
        own = [each for each in self.comparisons if each.part is part]
        requests, gained, lost = (sum(getattr(each, name) for each in own) for name in ("requests", "gained", "lost"))
        return {"requests": requests, "gained": round(gained, 3), "lost": round(lost, 3)}

    @property
    def failures(self) -> list[str]:
        """Why the policy may not stay; empty if it may."""
        found = [
            f"{self.policy} loses {one['lost'] - one['gained']:g} first places of judged queries"
            for one in [self.total(Part.FIRST)]
            if one["lost"] > one["gained"]
        ]
        silent = {each.what for each in self.comparisons if each.part is Part.SILENT}
        for what in sorted(silent):
            parts = [each for each in self.comparisons if (each.part, each.what) == (Part.SILENT, what)]
            if (net := sum(each.gained - each.lost for each in parts)) < 0:
                found.append(f"{self.policy} loses {-net:g} where it must do nothing: {what}")
        own = self.total(Part.OWN)
        if own["requests"] and own["gained"] <= own["lost"]:
            found.append(f"{self.policy} wins nothing on its own requests")
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            **{part: self.total(part) for part in Part},
            "failures": self.failures,
            "comparisons": [each.to_json() for each in self.comparisons],
        }
