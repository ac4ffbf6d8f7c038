"""Language models compared: a baseline and two pipelines with each of them."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from experiments.report.cells import INTERVALS, NONE, Section, Table, measure, number, percent
from experiments.report.results import measured_only, not_run_notes
from experiments.studies.context import Experiment, ExperimentContext
from experiments.variants import SYSTEMS
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import SEED
from mats.evaluation.results import Json
from mats.evaluation.systems.base import total_failure
from mats.evaluation.systems.score import metrics_json, stage_percentiles
from mats.evaluation.systems.workbench import Workbench

_COMPARED = ("search-and-pick", "pipeline-bm25", "pipeline-dense")
_SETS = ("tools", "agents", "toolret", "toolret-agents", "appworld")  # The paper's, and what stands for them
_SAMPLE = 500  # Capabilities
_COMMAND = "python -m experiments run models --data DATA --model ID"


def run(context: ExperimentContext) -> dict[str, Any]:
    """Each model on each set, and over a sample of the large one."""
    sets = [context.dataset(name) for name in context.sets if name in (context.large_set, *_SETS)]
    sets.insert(0, sample_pool(context.dataset(context.large_set), _SAMPLE))
    ids = context.model_ids or (context.models.names["reranker"],)
    return {
        "models": {
            id: {f"{one.name} ({len(one.registrations):,})": _results(context, id, one) for one in sets} for id in ids
        }
    }


def sample_pool(dataset: Dataset, size: int) -> Dataset:
    """A seeded sample of capabilities with the queries that have a relevant one in it."""
    registrations = random.Random(SEED).sample(list(dataset.registrations), min(size, len(dataset.registrations)))
    ids = {registration.id for registration in registrations}
    queries = [
        replace(query, relevant=query.relevant & ids) for query in dataset.queries if not query.relevant.isdisjoint(ids)
    ]
    return replace(dataset, registrations=registrations, queries=queries)


def _results(context: ExperimentContext, id: str, dataset: Dataset) -> dict[str, Any]:
    results: dict[str, Any] = {}
    models = replace(context.models, settings=replace(context.models.settings, rerank_model=id))
    with Workbench(dataset=dataset, models=models, writer=models.writer if context.enriched else None) as bench:
        for name in _COMPARED:
            if lacking := context.lacking(SYSTEMS[name].needs):
                results[name] = {"not_run": lacking}
                continue
            context.log(f"{dataset.name}: {name} with {id}")
            answers = SYSTEMS[name].answers(bench)
            failure = total_failure(answers)
            measured = {**metrics_json(answers, dataset), "ms": stage_percentiles(answers)}
            results[name] = {"not_run": failure} if failure else measured
    return results


def section(results: Json, paper: Json) -> Section:
    measured = results["models"]
    missing = [name for id, name in paper["model_ids"].items() if not any(id in each for each in measured)]
    systems = (
        (f"{id}: {name}", one) for id, sets in measured.items() for by in sets.values() for name, one in by.items()
    )
    table = Table(
        id="models-match-1",
        caption="Match@1 by language model, % (capabilities), and latency",
        head=("set", "model", *_COMPARED, "p50 of the last, ms"),
        rows=(*_ours(measured), *_of_paper(paper)),
        labels=2,
        notes=(
            f"The paper ({paper['rerankers']['table']}, {paper['models']['table']}) swaps the reranker of a pipeline "
            "that it does not name: Nova Micro's 38.9 % on ToolRet is that of its BGE, 78.2 % on AppWorld is in no "
            "column of its main table.",
            *not_run_notes(systems),
            *([f"Not run ({', '.join(missing)}): use `{_COMMAND}`, once for each"] if missing else []),
        ),
    )
    return Section(
        id="models",
        title="Language models",
        summary=f"The same systems with other models. {INTERVALS}",
        tables=(table,),
    )


def _ours(measured: Json) -> Iterator[tuple[str, ...]]:
    for id, sets in measured.items():
        for title, systems in sets.items():
            if measured_only(systems):
                p50 = systems[_COMPARED[-1]].get("ms", {}).get("total", {}).get("p50")
                yield title, id, *(measure(systems[name], "match@1") for name in _COMPARED), number(p50)


def _of_paper(paper: Json) -> Iterator[tuple[str, ...]]:
    for row, models in paper["rerankers"]["rows"].items():
        for model, one in models.items():
            yield (row, f"paper: {model}", NONE, NONE, percent(one["match@1"]), number(one["p50_ms"]))
    for row, models in paper["models"]["rows"].items():
        for model, one in models.items():
            yield (row, f"paper: {model}", *(percent(one[paper["systems"][n]]) for n in _COMPARED), NONE)


EXPERIMENTS = (Experiment(name="models", place=15, run=run, section=section),)
