"""Requests for several things: all right answers among the first results, without and with parts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.studies.context import ExperimentContext, share_json
from mats.domain.capability.capability import Id
from mats.domain.ranking.query import Query
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.percentiles import percentiles
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.score import dataset_json
from mats.usecases.discover import Discover

_SETS = ("tools", "multitool")
_READ = (5, 10, 15)
"""Results that a caller asks for and reads."""

Read = Mapping[int, Sequence[Id]]
"""The results shown, by the number asked for."""


def parts(context: ExperimentContext) -> dict[str, Any]:
    """Every set whose requests may need several capabilities, asked as a whole and in parts."""
    names = [name for name in _SETS if name in context.sets]
    lacking = context.models.lacking({"encoder"})
    return {"sets": {name: {"not_run": lacking} if lacking else _of_set(context, name) for name in names}}


def _of_set(context: ExperimentContext, name: str) -> dict[str, Any]:
    dataset, discover = context.dataset(name), context.bench(name).discover
    context.log(f"{name}: {len(dataset.queries):,} requests as a whole and in parts")
    answers: dict[str, dict[str, Read]] = {"as a whole": {}, "in parts": {}}
    cut: dict[str, int] = {}
    ms: dict[int, list[float]] = defaultdict(list)
    for query in dataset.queries:
        request = Query(query=query.text[:LONGEST_QUERY], parts=True)
        cut[query.id] = max(1, len(request.texts) - 1)
        whole = discover(request.model_copy(update={"parts": False}))
        ranked = [result.candidate.profile.id for result in whole.ranked]
        answers["as a whole"][query.id] = {count: ranked[:count] for count in _READ}
        answers["in parts"][query.id] = answers["as a whole"][query.id]
        ms[1].append(whole.trace.took_ms["total"])
        if cut[query.id] > 1:
            answers["in parts"][query.id], took = _in_parts(discover, request)
            ms[cut[query.id]] += took
    return {
        **dataset_json(dataset),
        **_counts(dataset, cut),
        "systems": {label: _measure(read, dataset) for label, read in answers.items()},
        "ms": {str(count): {"answers": len(took), **percentiles(took, 50)} for count, took in sorted(ms.items())},
    }


def _in_parts(discover: Discover, request: Query) -> tuple[Read, list[float]]:
    read, took = {}, []
    for count in _READ:
        answer = discover(request.model_copy(update={"limit": count}))
        read[count] = [result.candidate.profile.id for result in answer.results]
        took.append(answer.trace.took_ms["total"])
    return read, took


def _counts(dataset: Dataset, cut: Mapping[str, int]) -> dict[str, Any]:
    several, single = _several(dataset), _single(dataset)
    return {
        "several": len(several),
        "single": len(single),
        "several_cut": sum(cut[query.id] > 1 for query in several),
        "single_cut": sum(cut[query.id] > 1 for query in single),
    }


def _measure(read: Mapping[str, Read], dataset: Dataset) -> dict[str, Any]:
    """`complete@k`: all right answers are among k results, for requests with several; `match@k` of the others."""
    several, single = _several(dataset), _single(dataset)
    complete = {
        f"complete@{count}": share_json(np.array([float(q.relevant <= set(read[q.id][count])) for q in several]))
        for count in _READ
    }
    match = {
        f"match@{count}": share_json(
            np.array([float(not q.relevant.isdisjoint(read[q.id][max(_READ)][:count])) for q in single])
        )
        for count in (1, 15)
    }
    return {**complete, **match}


def _several(dataset: Dataset) -> list[JudgedQuery]:
    return [query for query in dataset.queries if len(query.relevant) > 1]


def _single(dataset: Dataset) -> list[JudgedQuery]:
    return [query for query in dataset.queries if len(query.relevant) == 1]
