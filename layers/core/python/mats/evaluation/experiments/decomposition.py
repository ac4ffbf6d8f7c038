"""3 · Causes of misses: recall of the first stage times the accuracy of the order of its candidates."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.experiments.context import ExperimentContext, first_is_right, has_candidate, share_json
from mats.evaluation.systems.base import Answers, SystemAnswer
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.score import dataset_json

_PICKERS = frozenset({"regex", "full-ctx", "search-and-pick", "trial-and-err"})
"""Systems without a first stage."""
_EXAMPLES = 5


def decomposition(context: ExperimentContext) -> dict[str, Any]:
    """Both factors and the categories of misses; texts of real misses go to the examples."""
    sets = {}
    for name in context.sets:
        variants = [variant for variant in VARIANTS if variant not in _PICKERS]
        systems = {
            variant: context.result(name, variant, partial(_one, context, f"failures-{name}-{variant}"))
            for variant in variants
        }
        sets[name] = {**dataset_json(context.dataset(name)), "systems": systems}
    return {"k": context.models.settings.k, "sets": sets}


def _one(context: ExperimentContext, examples: str, answers: Answers, dataset: Dataset) -> dict[str, Any]:
    hits, candidates = first_is_right(answers, dataset), has_candidate(answers, dataset)
    missed = [(query, answers[query.id]) for query, hit in zip(dataset.queries, hits, strict=True) if not hit]
    kinds = [category(query, answer) for query, answer in missed]
    context.write_examples(examples, _examples(dataset, missed))
    return {
        "candidates": share_json(candidates),
        "conditional": share_json(hits[candidates > 0]),
        "match@1": share_json(hits),
        "misses_at_retrieval": round(kinds.count("retrieval_miss") / len(kinds), 4) if kinds else 0.0,
        "categories": {kind: kinds.count(kind) for kind in ("retrieval_miss", "picked_another", "several_gold")},
    }


def category(query: JudgedQuery, answer: SystemAnswer) -> str:
    """The category of a miss, of those in the paper that labels can tell.

    `retrieval_miss`: no relevant candidate. `several_gold`: the query needs several capabilities, and some of them are
    candidates. `picked_another`: the relevant capability is a candidate, and another one is first.
    """
    if not query.relevant.intersection(answer.retrieved):
        return "retrieval_miss"
    return "several_gold" if len(query.relevant) > 1 else "picked_another"


def _examples(dataset: Dataset, missed: Iterable[tuple[JudgedQuery, SystemAnswer]]) -> list[dict[str, Any]]:
    """A few misses of each category, with query, relevant capabilities and first result."""
    described = {registration.id: registration.description for registration in dataset.registrations}
    examples: dict[str, list[dict[str, Any]]] = {}
    for query, answer in missed:
        kind = category(query, answer)
        row = {
            "category": kind,
            "query": query.text,
            "right": {id: described.get(id) for id in sorted(query.relevant)},
            "first": {id: described.get(id) for id in answer.ranked[:1]},
            "rank": next((rank for rank, id in enumerate(answer.ranked, start=1) if id in query.relevant), None),
        }
        examples.setdefault(kind, []).append(row)
    return [row for rows in examples.values() for row in rows[:_EXAMPLES]]
