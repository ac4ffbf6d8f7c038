"""Thresholds of the verdict, fitted on one half of the queries and tested on the other.

In scope are the judged queries; out of scope are the same queries over a registry without their gold, and gibberish.
`weak` is the highest threshold at which of no set more than 5 % of the in-scope queries that find anything get `none`;
`match` is the lowest at which at least 80 % of the in-scope queries it accepts have gold in their list, and not below
what small registries need.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from mats.domain.search.query import Query
from mats.domain.search.scale import Scale
from mats.domain.search.verdict import WEAK_UNREAD
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import SEED, Values
from mats.evaluation.systems.workbench import registry_of, without_timeouts
from mats.ports import Encoder
from mats.settings import Settings
from mats.usecases.discover import Discover

_MAX_REJECTED = 0.05
_MATCH_PRECISION = 0.8
_GIBBERISH = 300
QUERY_CLASSES = ("good", "bereft", "gibberish")  # In scope, without their gold, and gibberish
Scores: TypeAlias = dict[str, Values]
"""The best relevance of each query by its class; `has_gold` is 1 where a good query found gold."""


def scaled(discover: Discover, scale: Scale) -> Discover:
    """The pipeline without timeouts, with these constants."""
    return replace(without_timeouts(discover), scoring=replace(discover.scoring, scale=scale))


def relevance_scores(dataset: Dataset, settings: Settings, encoder: Encoder | None, scale: Scale) -> Scores:
    """The best relevance of every query of a set: with its gold, without it, and of gibberish."""
    if encoder is None:
        settings = Settings(encoder="none", cache=settings.cache)
    gold = {id for query in dataset.queries for id in query.relevant}
    others = [r for r in dataset.registrations if r.id not in gold]
    with registry_of(dataset.registrations, settings, encoder=encoder) as local:
        discover = scaled(local.discover, scale)
        answers = [_best(discover, query) for query in dataset.queries]
        gibberish = [_best(discover, query)[0] for query in _gibberish(dataset.name)]
    with registry_of(others, settings, encoder=encoder) as local:
        discover = scaled(local.discover, scale)
        without = [_best(discover, query)[0] for query in dataset.queries]
    best, has_gold = np.array(answers).T
    return {"good": best, "has_gold": has_gold, "bereft": np.array(without), "gibberish": np.array(gibberish)}


def _best(discover: Discover, query: JudgedQuery) -> tuple[float, float]:
    """The relevance of the most relevant candidate, and whether gold is among the candidates (1 or 0).

    The relevance is 0 for what is `none` at any threshold, because it is no words, and -1 where nothing was found.
    """
    answer, usual = discover.answer(Query(query=query.text[:2_000])), discover.thresholds
    best = max((result.relevance for result in answer.ranked), default=-1.0)
    if 0 <= best < WEAK_UNREAD and answer.trace.thresholds not in (usual.hybrid, usual.lexical):
        best = 0.0
    return best, float(any(result.id in query.relevant for result in answer.ranked))


def _gibberish(seed: str) -> list[JudgedQuery]:
    """Words of random letters, two to eight a query."""
    chance = random.Random(f"{SEED}-{seed}")
    letters = "abcdefghijklmnopqrstuvwxyz"

    def word() -> str:
        return "".join(chance.choice(letters) for _ in range(chance.randint(3, 9)))

    texts = [" ".join(word() for _ in range(chance.randint(2, 8))) for _ in range(_GIBBERISH)]
    return [JudgedQuery(f"nonsense-{i}", text, frozenset()) for i, text in enumerate(texts)]


def join(sets: Sequence[Scores]) -> Scores:
    """The scores of several sets as those of one."""
    return {key: np.concatenate([scores[key] for scores in sets]) for key in sets[0]}


def halves(sets: Sequence[Scores]) -> tuple[list[Scores], list[Scores]]:
    """The even and the odd queries of every set."""
    even, odd = ([{key: each[start::2] for key, each in scores.items()} for scores in sets] for start in (0, 1))
    return even, odd


def fit_weak(sets: Sequence[Scores]) -> float:
    """The highest threshold below which at most 5 % of any set's in-scope queries lie, of those that find anything."""
    candidates = np.linspace(0, 1, 1_001)
    found = [s["good"][s["good"] >= 0] for s in sets]
    rejected = np.array([max((best < t).mean() for best in found if len(best)) for t in candidates])
    return float(candidates[rejected <= _MAX_REJECTED][-1])


def fit_match(sets: Sequence[Scores]) -> float:
    """The lowest threshold from which at least 80 % of the accepted in-scope queries have gold in their list."""
    for threshold in np.linspace(0, 1, 1_001):
        accepted = [s["has_gold"][s["good"] >= threshold] for s in sets]
        rates = [hits.mean() for hits in accepted if len(hits)]
        if rates and np.mean(rates) >= _MATCH_PRECISION:
            return float(threshold)
    return 1.0


def verdict_rates(sets: Sequence[Scores], weak: float, match: float) -> dict[str, Any]:
    """For each class of queries the rates of `none` and of `match`; means over the sets."""
    rates = {
        key: {
            "none": _mean([(s[key] < weak).mean() for s in sets]),
            "match": _mean([(s[key] >= match).mean() for s in sets]),
        }
        for key in QUERY_CLASSES
    }
    return {"told": rates}


def _mean(values: Sequence[Any]) -> float:
    return round(float(np.mean(values)), 4)
