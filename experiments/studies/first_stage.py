"""The first stage: its settings one at a time, the number of candidates, the sources, the weights of the fields."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas

from experiments.report.cells import (
    INTERVALS,
    Figure,
    Section,
    Table,
    comma_list,
    measure,
    measures,
    number,
    percent,
)
from experiments.report.results import measured_only, not_run_notes
from experiments.report.style import (
    PER_CENT,
    bars,
    legend_below,
    panels,
)
from experiments.studies.context import Experiment, ExperimentContext, has_candidate, match_json, share_json
from mats.adapters.sqlite.index import SqliteIndex
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.index_fields import FIELD_WEIGHTS
from mats.domain.ranking.blend import Scores, best_first, fuse
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import estimate
from mats.evaluation.results import Json
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
_MATCH = ("match@1", "match@15")


def run(context: ExperimentContext) -> dict[str, Any]:
    """Each setting changed alone on every set, recall at each k, the sources of each set, the paper's encoders."""
    return {
        "sets": _each_set(context, _settings_json),
        "encoders": {name: _with_encoder(context, encoder) for name, encoder in PAPER_ENCODERS.items()},
    }


def run_weights(context: ExperimentContext) -> dict[str, Any]:
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


def _settings_json(context: ExperimentContext, name: str, discover: Discover) -> dict[str, Any]:
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


def section(results: Json, paper: Json) -> Section:
    sets = measured_only(results["sets"])
    return Section(
        id="first-stage",
        title="The first stage",
        summary=f"Retrieval without a reranker. {INTERVALS}",
        tables=(_settings("first-stage-settings", results), _candidates(sets), _sources(sets, paper["sources"])),
        figures=_source_figure(sets),
    )


def weights_section(results: Json, paper: Json) -> Section:
    return Section(
        id="field-weights",
        title="Weights of the lexical fields",
        summary=f"The first stage with other weights of one field. {INTERVALS}",
        tables=(_settings("field-weights-settings", results),),
    )


def _settings(id: str, results: Json) -> Table:
    return Table(
        id=id,
        caption="One setting changed at a time, %",
        head=("set", "setting", *_MATCH),
        rows=tuple(
            (name, label, *measures(metrics, _MATCH))
            for name, one in measured_only(results["sets"]).items()
            for label, metrics in one["settings"].items()
        ),
        labels=2,
        notes=tuple(not_run_notes(results["sets"].items())),
    )


def _candidates(sets: Json) -> Table:
    ks = tuple(dict.fromkeys(k for one in sets.values() for k in one["k"]))
    return Table(
        id="first-stage-k",
        caption="Match and recall of k candidates, %",
        head=("set", "measure", *(f"k = {k}" for k in ks)),
        rows=tuple(
            (name, label, *(percent(one["k"].get(k, {}).get(key)) for k in ks))
            for name, one in sets.items()
            for key, label in (("match", "any relevant one"), ("recall", "share of relevant ones"))
        ),
        labels=2,
    )


def _sources(sets: Json, known: Json) -> Table:
    of_paper, systems = known["rows"]["Tools / ToolRet"], ("bm25", "hybrid")
    rows: list[tuple[str, ...]] = []
    for name, part in sets.items():
        shared = of_paper if name in ("tools", "toolret") else {}  # no other set of the paper shares sources with ours
        for source, one in part["sources"].items():
            cells = (measure(one[system], match) for match in _MATCH for system in systems)
            rows.append(
                (name, source, number(one["queries"]), *cells, percent(shared.get(source, {}).get("ours+titan")))
            )
    return Table(
        id="first-stage-sources",
        caption="Source by source, %",
        head=("set", "source", "queries", "bm25 @1", "hybrid @1", "bm25 @15", "hybrid @15", "paper: ours+titan @1"),
        rows=tuple(rows),
        labels=2,
        notes=(
            f"The paper's column ({known['table']}) is its whole pipeline over all of ToolRet, for the "
            "sources that we have: other queries and another registry.",
            *not_run_notes(
                (system, one.get(system))
                for part in sets.values()
                for one in part["sources"].values()
                for system in systems
            ),
        ),
    )


def _source_figure(sets: Json) -> tuple[Figure, ...]:
    """The figure of the set with the most measured sources, if it has at least two."""
    comparable = {
        name: {source: one for source, one in part["sources"].items() if measured_only(one) == one}
        for name, part in sets.items()
    }
    name = max(comparable, key=lambda each: len(comparable[each]), default="")
    if not name or len(comparable[name]) < 2:
        return ()
    figure = Figure(
        id="sources",
        caption=f"Plain BM25 and the first stage as shipped, source by source of `{name}`, with 95 % intervals; "
        "n is the number of queries.",
        alt=f"Bars of Match@1 and Match@15 for {comma_list(comparable[name])}, by Match@15 of the first stage.",
        draw=lambda: by_source(comparable[name]),
    )
    return (figure,)


def by_source(sources: Json) -> Canvas:
    order = sorted(sources, key=lambda each: (-sources[each]["hybrid"]["match@15"]["mean"], each))
    figure, grid = panels(1, 2, height=1.8 + 0.46 * len(order), sharey=True)
    for panel, name in zip(grid, ("match@1", "match@15"), strict=True):
        for side, system in enumerate(("bm25", "hybrid")):
            bars(panel, side, system, [sources[each][system][name] for each in order])
        panel.set(title=name.capitalize(), xlabel=PER_CENT, xlim=(0, 103), ylim=(len(order) - 0.4, -0.6))
        panel.grid(visible=True, axis="x")
    grid[0].set_yticks(range(len(order)), [f"{each} (n = {sources[each]['queries']:,})" for each in order])
    legend_below(figure, grid[0], columns=2)
    return figure


EXPERIMENTS = (
    Experiment(name="first-stage", place=70, run=run, section=section),
    Experiment(name="field-weights", place=80, run=run_weights, section=weights_section),
)
