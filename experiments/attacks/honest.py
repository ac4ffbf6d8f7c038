"""Costs of the defences for honest registrations: flags, and matches lost by trust."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.attacks.run import AttackedRegistry
from mats.domain.capability.capability import Id
from mats.domain.capability.suspicion import suspicions
from mats.evaluation.data.datasets import Dataset, JudgedQuery

_NO_TRUST: Mapping[Id, int] = {}


def count_flags(registry: AttackedRegistry, dataset: Dataset) -> dict[str, Any]:
    """Registrations that are flagged when they are registered, and those that answers to the set's queries flag.

    The latter are counted once each; `ever` are those of either.
    """
    at_once = {item.id: reasons for item in dataset.registrations if (reasons := suspicions(item))}
    in_answers: dict[Id, set[str]] = {}
    seen: set[Id] = set()
    for query in dataset.queries:
        results = {result.id: result for result in registry.shortlist(query.text).ranked}
        seen |= results.keys()
        for id, result in results.items():
            if added := set(result.suspicious) - set(result.candidate.profile.suspicious):
                in_answers.setdefault(id, set()).update(_without_ids(reason, results) for reason in added)
    return {
        "registrations": len(dataset.registrations),
        "queries": len(dataset.queries),
        "in_any_answer": len(seen),
        "flagged": {"at_registration": len(at_once), "in_answers": len(in_answers)},
        "ever": len(at_once.keys() | in_answers.keys()),
        "reasons": {"at_registration": _tally(at_once.values()), "in_answers": _tally(in_answers.values())},
    }


def _without_ids(reason: str, ids: Iterable[Id]) -> str:
    """The reason with every id that it names as an ellipsis, so that equal reasons count together."""
    for id in sorted(ids, key=len, reverse=True):
        reason = reason.replace(id, "…")
    return reason


def _tally(reasons: Iterable[Iterable[str]]) -> dict[str, int]:
    return dict(Counter(reason for each in reasons for reason in each).most_common())


def sum_flags(sets: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The counts over all sets, and the share of registrations that are flagged at all."""
    registrations, ever = (sum(one[name] for one in sets) for name in ("registrations", "ever"))
    return {"registrations": registrations, "ever": ever, "share": round(ever / registrations, 5)}


def trust_cost(registry: AttackedRegistry, queries: Sequence[JudgedQuery], trust: Mapping[Id, int]) -> dict[str, Any]:
    """Queries with a relevant capability first, and among all candidates, with this trust and without any."""
    matches = {}
    for name, assigned in (("with_trust", trust), ("without_trust", _NO_TRUST)):
        registry.assign(assigned)
        matches[name] = count_matches(registry, queries)
    return {"queries": len(queries), "rated": len(trust), **matches}


def count_matches(registry: AttackedRegistry, queries: Sequence[JudgedQuery]) -> dict[str, int]:
    """Queries with a relevant capability first, and among all candidates."""
    answers = [(query.relevant, registry.rank_ids(query.text)) for query in queries]
    return {
        "match@1": sum(not relevant.isdisjoint(ranked[:1]) for relevant, ranked in answers),
        "match@15": sum(not relevant.isdisjoint(ranked) for relevant, ranked in answers),
    }
