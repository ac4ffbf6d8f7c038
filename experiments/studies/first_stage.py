"""The first stage: its settings one at a time, the number of candidates, the sources, the weights of the fields."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from experiments.studies.context import ExperimentContext, has_candidate, match_json, share_json
from mats.adapters.sqlite.index import SqliteIndex
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.index_fields import FIELD_WEIGHTS
from mats.domain.ranking.blend import Scores, best_first, fuse
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import estimate
from mats.evaluation.systems.base import ask
from mats.evaluation.systems.catalogue import dense, lexical
from mats.evaluation.systems.models import PAPER_ENCODERS, Models, PaperEncoder
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.score import dataset_json, estimate_json
from mats.settings import SettingsInvalid
from mats.usecases.discover import Discover

KS = (5, 10, 15, 25, 50)
FIELDS: Mapping[str, Mapping[str, float]] = {
    "as shipped": {},
    "every field alike": dict.fromkeys(FIELD_WEIGHTS, 1.0),
    "names twice": {"name": 2.0},
    "descriptions half": {"description": 0.5},
    "parameters twice": {"parameters": 2.0},
    "parameters not at all": {"parameters": 0.0},
    "other text not at all": {"other": 0.0},
}
"""The changed weights of each row."""


def first_stage(context: ExperimentContext) -> dict[str, Any]:
    """Each setting changed alone on every set, recall at each k, the sources of each set, the paper's encoders."""
    return {
        "sets": _each_set(context, _settings),
        "encoders": {name: _with_encoder(context, encoder) for name, encoder in PAPER_ENCODERS.items()},
    }


def field_weights(context: ExperimentContext) -> dict[str, Any]:
    return {"sets": _each_set(context, _weights)}


def _each_set(
    context: ExperimentContext, measure: Callable[[ExperimentContext, str, Discover], dict[str, Any]]
) -> dict[str, Any]:
    lacking = context.models.lacking({"encoder"})
    return {
        name: {
            **dataset_json(context.dataset(name)),
            **({"not_run": lacking} if lacking else measure(context, name, context.bench(name).discover)),
        }
        for name in context.sets
    }


def _settings(context: ExperimentContext, name: str, discover: Discover) -> dict[str, Any]:
    return {
        "settings": context.match_of_each(name, settings_of(discover)),
        "k": {str(k): _at(discover, context.dataset(name), k) for k in KS},
        "sources": sources(context, name),
    }


def _weights(context: ExperimentContext, name: str, discover: Discover) -> dict[str, Any]:
    retrieve, index = discover.retrieve, discover.retrieve.index
    if not isinstance(index, SqliteIndex):
        raise TypeError(f"the fields of {index.name} cannot be weighted")
    pipelines = {
        label: replace(discover, retrieve=replace(retrieve, index=index.weighing({**FIELD_WEIGHTS, **changed})))
        for label, changed in FIELDS.items()
    }
    return {"settings": context.match_of_each(name, pipelines)}


def _with_encoder(context: ExperimentContext, encoder: PaperEncoder) -> dict[str, Any]:
    """The first stage with an encoder of the paper on every set, or why its weights are not available."""
    settings = context.models.settings
    if (encoder.encoder, encoder.query_prefix) == (settings.encoder, settings.query_prefix):
        return _all_sets(context)
    try:
        models = Models(replace(settings, encoder=encoder.encoder, query_prefix=encoder.query_prefix))
        if models.encoder is None:
            return {"not_run": "there is no such encoder"}
    except (DependencyFailed, SettingsInvalid) as error:
        return {"not_run": str(error)}
    with ExperimentContext(data=context.data, models=models, sets=context.sets) as other:
        return _all_sets(other)


def _all_sets(context: ExperimentContext) -> dict[str, Any]:
    return {"sets": {name: context.result(name, "hybrid", match_json) for name in context.sets}}


def settings_of(discover: Discover) -> Mapping[str, Discover]:
    """The production pipeline, and with one setting changed."""

    def retrieval(**changed: Any) -> Discover:
        return replace(discover, retrieve=replace(discover.retrieve, **changed))

    def scale(**changed: float) -> Discover:
        return discover.with_scoring(scale=replace(discover.scoring.scale, **changed))

    return {
        "as shipped": discover,
        "words only": lexical(discover),
        "vectors only": dense(discover),
        "share of words .5": retrieval(fusion=partial(fuse, lexical_share=0.5)),
        "share of words .7": retrieval(fusion=partial(fuse, lexical_share=0.7)),
        "reciprocal rank fusion": retrieval(fusion=reciprocal_ranks),
        "100 of each side": retrieval(depth=100),
        "500 of each side": retrieval(depth=500),
        "without pairs of words": scale(pairs_share=0.0),
        "ordered by words alone": scale(lexical_share=1.0),
        "ordered by vectors alone": scale(lexical_share=0.0),
    }


def reciprocal_ranks(lexical: Scores, neural: Scores, *, k: int = 60) -> dict[Id, float]:
    """The sum of 1 / (k + rank) over both lists, ranks from 1 (Cormack, Clarke and Buettcher, SIGIR 2009)."""
    fused: dict[Id, float] = {}
    for scores in (lexical, neural):
        for rank, id in enumerate(best_first(scores), start=1):
            fused[id] = fused.get(id, 0.0) + 1 / (k + rank)
    return fused


def _at(discover: Discover, dataset: Dataset, k: int) -> dict[str, Any]:
    """The share of queries with a relevant one among k candidates, and the recall."""
    answers = ask(shortlist_system(replace(discover, retrieve=replace(discover.retrieve, k=k))), dataset.queries)
    recall = np.array(
        [len(q.relevant.intersection(answers[q.id].retrieved)) / len(q.relevant) for q in dataset.queries]
    )
    return {"match": share_json(has_candidate(answers, dataset)), "recall": estimate_json(estimate(recall))}


def sources(context: ExperimentContext, name: str) -> dict[str, Any]:
    """Plain BM25 and the first stage as shipped, for each upstream source of a set."""
    dataset = context.dataset(name)
    queries = defaultdict(list)
    for query in dataset.queries:
        queries[query.source or name].append(query)
    table: dict[str, Any] = {source: {"queries": len(part)} for source, part in sorted(queries.items())}
    for variant in ("bm25", "hybrid"):
        answers = context.answers(name, variant)
        for source, part in queries.items():
            if isinstance(answers, str):
                table[source][variant] = {"not_run": answers}
                continue
            own = {query.id: answers[query.id] for query in part}
            table[source][variant] = match_json(own, replace(dataset, queries=part))
    return table
