"""The gain from remembered outcomes: learning curves over past requests, known and new ones, and false outcomes.

The production path without a reranker. History of `multitool` is `multitool-history`; of the other sets, one half of
their judged queries, over several splits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from experiments.studies.context import ExperimentContext, share_json
from experiments.studies.history import (
    HistoryMemory,
    Past,
    halves,
    multitool_history,
    only_shown,
    with_false_outcomes,
)
from mats.domain.learning.voting import RULE, MemoryRule
from mats.domain.ranking.query import Query
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.measures import SEED
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.score import dataset_json
from mats.usecases.discover import Discover
from mats.usecases.retrieve import Recall

SETS = ("multitool", "tools", "mcp-tools-closed", "skills", "agents", "models")
OUTCOMES = (0, 100, 500, 1_000, 4_000)
SPLITS = 2
FALSE_SHARE = 0.2
_MULTITOOL, _HISTORY = "multitool", "multitool-history"
_FIVE = 5
_STANDARD, _SAME = 1_000, "standard"

Values = Mapping[str, Sequence[Mapping[str, float]]]
"""For every slice, the measures of each of its queries."""


@dataclass(frozen=True, slots=True)
class HistorySplit:
    """Past requests, in random order, and judged queries by slice: familiar ones, and those that are new to it."""

    past: Sequence[Past]
    familiar: Sequence[JudgedQuery]
    new: Sequence[JudgedQuery]


def learning(context: ExperimentContext, rule: MemoryRule = RULE) -> dict[str, Any]:
    """Measures of every set after some outcomes; `all` uses the whole history."""
    names = [name for name in SETS if name in context.sets and _has_history(context, name)]
    return {
        "rule": asdict(rule),
        "splits": SPLITS,
        "false_share": FALSE_SHARE,
        "outcomes": OUTCOMES,
        "sets": {name: _set(context, name, rule) for name in names},
    }


def _has_history(context: ExperimentContext, name: str) -> bool:
    return name != _MULTITOOL or (context.data / _HISTORY).is_dir()


def _set(context: ExperimentContext, name: str, rule: MemoryRule) -> dict[str, Any]:
    if lacking := context.models.lacking({"encoder"}):
        return {"not_run": lacking}
    discover = context.bench(name).discover
    context.log(f"{name}: learning")
    measured: dict[str, list[Values]] = {}
    sizes = []
    for split in _splits(context, name, discover):
        sizes.append(len(split.past))
        for label, past in _histories(split.past, len(sizes)).items():
            context.log(f"{name}: split {len(sizes)}, {label} outcomes")
            same = label == _SAME and str(_STANDARD) in measured
            values = measured[str(_STANDARD)][-1] if same else measure(discover, past, split, rule)
            measured.setdefault(label, []).append(values)
    return {
        **dataset_json(context.dataset(name)),
        "history": sizes[0],
        "after": {label: _summary(values) for label, values in measured.items()},
    }


def _histories(past: Sequence[Past], seed: int) -> dict[str, Sequence[Past]]:
    """Past requests by label: the numbers of OUTCOMES that there are, and the standard history, changed."""
    standard = past[:_STANDARD]
    numbers = {str(number): past[:number] for number in OUTCOMES if number <= len(past)}
    return {
        **numbers,
        _SAME: standard,
        "false": with_false_outcomes(standard, FALSE_SHARE, seed),
        "shown": only_shown(standard),
    }


def _splits(context: ExperimentContext, name: str, discover: Discover) -> Iterable[HistorySplit]:
    dataset = context.dataset(name)
    if name == _MULTITOOL:
        requests, known = multitool_history(context.data / _HISTORY, dataset)
        rng = np.random.default_rng(SEED)
        chosen = [requests[position] for position in rng.permutation(len(requests))[: max(OUTCOMES)].tolist()]
        familiar = [query for query in dataset.queries if known[query.id]]
        yield HistorySplit(
            _as_past(discover, chosen), familiar, [query for query in dataset.queries if not known[query.id]]
        )
        return
    queries = dataset.queries
    asked = {each.id: each for each in _as_past(discover, queries)}
    vectors = np.array([asked[query.id].vector for query in queries], np.float32)
    for seed in range(SPLITS):
        history, judged = halves(queries, vectors, seed)
        order = np.random.default_rng((SEED, seed)).permutation(len(history)).tolist()
        past = [asked[history[position].id] for position in order]
        reported = frozenset(id for each in past[:_STANDARD] for id in each.used)
        familiar = [query for query in judged if not reported.isdisjoint(query.relevant)]
        yield HistorySplit(past, familiar, [query for query in judged if reported.isdisjoint(query.relevant)])


def _as_past(discover: Discover, queries: Iterable[JudgedQuery]) -> list[Past]:
    """Queries as past requests, with what the pipeline shows without a memory."""
    encoder = discover.retrieve.encoder
    if encoder is None:
        raise ValueError("the memory needs an encoder")
    plain = replace(discover, retrieve=replace(discover.retrieve, recall=None))
    past = []
    for query in queries:
        text = query.text[:LONGEST_QUERY]
        shown = tuple(result.candidate.profile.id for result in plain(Query(query=text)).ranked)
        past.append(Past(query.id, text, query.relevant, shown, encoder.encode_query(text)))
    return past


def measure(discover: Discover, past: Sequence[Past], split: HistorySplit, rule: MemoryRule) -> Values:
    """The measures of every judged query after these past requests."""
    recall = Recall(memory=HistoryMemory(past), scale=discover.scoring.scale, rule=rule)
    learned = replace(discover, retrieve=replace(discover.retrieve, recall=recall))
    slices = {"familiar": split.familiar, "new": split.new}
    return {name: [_measures(learned, query) for query in queries] for name, queries in slices.items()}


def _measures(discover: Discover, query: JudgedQuery) -> dict[str, float]:
    ranked = [each.candidate.profile.id for each in discover(Query(query=query.text[:LONGEST_QUERY])).ranked]
    return {
        "match@1": float(not query.relevant.isdisjoint(ranked[:1])),
        "match@15": float(not query.relevant.isdisjoint(ranked)),
        "complete@5": float(query.relevant.issubset(ranked[:_FIVE])),
    }


def _summary(splits: Sequence[Values]) -> dict[str, Any]:
    """The mean of every measure over the queries of all splits, by slice, with its interval."""
    return {name: _slice([each for values in splits for each in values[name]]) for name in ("familiar", "new")}


def _slice(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    value: Callable[[str], Any] = lambda name: share_json(np.array([row[name] for row in rows]))  # noqa: E731
    return {"queries": len(rows), **{name: value(name) for name in ("match@1", "match@15", "complete@5")}}
