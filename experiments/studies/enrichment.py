"""Enrichment: raw against enriched profiles with ever less of the owner's text, and without each field."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from experiments.report.cells import (
    INTERVALS,
    NONE,
    Figure,
    PaperRow,
    Section,
    Table,
    gained_lost,
    measures,
)
from experiments.report.results import measured_only, not_run_notes, not_run_reason
from experiments.report.style import (
    bars,
    diamonds,
    legend_below,
    panels,
)
from experiments.studies.context import Experiment, ExperimentContext, mcnemar_json
from experiments.variants import SYSTEMS
from mats.domain.capability.registration import Registration
from mats.domain.text.words import first_sentence
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import SEED
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers
from mats.evaluation.systems.score import metrics_json
from mats.evaluation.systems.workbench import Workbench
from mats.ports import NO_LABELS, Labels, Writer, Written

POOL = 1_000
_HINT = 150
"""Characters of the first sentence, as in the paper."""
_WRITTEN = ("summary", "action", "keywords", "positive_examples")
"""Fields of the writer that are searched; negative examples are not."""
LEVELS: Mapping[str, Callable[[Registration], Registration]] = {
    "full": lambda r: _with_description(r, r.description),
    "hint": lambda r: _with_description(r, first_sentence(r.description, _HINT)),
    "name-only": lambda r: _with_description(r, ""),
}
OWNERS_FIELDS: Mapping[str, Callable[[Registration], Registration]] = {
    "description": lambda r: r.model_copy(update={"description": ""}),
    "parameters": lambda r: r.model_copy(update={"input_schema": None, "descriptor": None}),
    "provider and tags": lambda r: r.model_copy(update={"provider": "", "tags": ()}),
}
"""Functions that remove a part of a registration; a name cannot be removed."""
_MEASURES = ("match@1", "match@15", "recall@15")
_MCNEMAR = "Gained and lost are queries whose first result became right or wrong; p is exact McNemar, two-sided."


def _with_description(registration: Registration, description: str) -> Registration:
    """A registration of name and description, as in the paper's pool."""
    return Registration(
        namespace=registration.namespace, name=registration.name, kind=registration.kind, description=description
    )


@dataclass(frozen=True, slots=True)
class FieldOmittingWriter:
    writer: Writer
    field: str

    @property
    def name(self) -> str:
        """Differs from the writer's name, so that the profiles have another origin."""
        return f"{self.writer.name} without {self.field}"

    @property
    def prompt(self) -> str:
        return self.writer.prompt

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        written = self.writer.describe(registration, labels)
        empty = "" if self.field in ("summary", "action") else ()
        return replace(written, enrichment=written.enrichment.model_copy(update={self.field: empty}))


def run(context: ExperimentContext) -> dict[str, Any]:
    """Three levels of the owner's text, raw and enriched; then without each part of it, and without each field."""
    pool = sample_pool(context.dataset(context.large_set))
    levels = {name: _level(context, _with_registrations(pool, cut)) for name, cut in LEVELS.items()}
    whole, answers = context.dataset(context.large_set), context.answers(context.large_set, "hybrid")
    return {
        "dataset": context.large_set,
        "variant": "hybrid",
        "pool": len(pool.registrations),
        "queries": len(pool.queries),
        "levels": levels,
        "fields": {} if isinstance(answers, str) else _owners_fields(context, whole, answers),
        "written_fields": _written_fields(context, pool),
    }


def sample_pool(dataset: Dataset) -> Dataset:
    """A seeded sample of capabilities with the queries that have a relevant one in it."""
    registrations = random.Random(SEED).sample(list(dataset.registrations), min(POOL, len(dataset.registrations)))
    ids = {registration.id for registration in registrations}
    queries = [
        replace(query, relevant=query.relevant & ids) for query in dataset.queries if not query.relevant.isdisjoint(ids)
    ]
    return replace(dataset, registrations=registrations, queries=queries)


def _with_registrations(dataset: Dataset, change: Callable[[Registration], Registration]) -> Dataset:
    return replace(dataset, registrations=[change(registration) for registration in dataset.registrations])


def _level(context: ExperimentContext, pool: Dataset) -> dict[str, Any]:
    raw = _answers(context.bench_of(pool))
    if lacking := context.lacking({"llm"}):
        return {"raw": metrics_json(raw, pool), "enriched": {"not_run": lacking}, "mcnemar": None}
    enriched = _answers(context.bench_of(pool, writer=context.models.writer))
    return {
        "raw": metrics_json(raw, pool),
        "enriched": metrics_json(enriched, pool),
        "mcnemar": mcnemar_json(raw, enriched, pool),
    }


def _owners_fields(context: ExperimentContext, whole: Dataset, answers: Answers) -> dict[str, Any]:
    results = {}
    for name, change in OWNERS_FIELDS.items():
        context.log(f"{context.large_set}: without {name}")
        results[name] = _without_json(answers, context.bench_of(_with_registrations(whole, change)), whole)
    return results


def _written_fields(context: ExperimentContext, pool: Dataset) -> dict[str, Any]:
    if lacking := context.lacking({"llm"}):
        return {name: {"not_run": lacking} for name in _WRITTEN}
    writer = context.models.writer
    enriched = _answers(context.bench_of(pool, writer=writer))
    return {
        name: _without_json(enriched, context.bench_of(pool, writer=FieldOmittingWriter(writer, name)), pool)
        for name in _WRITTEN
    }


def _without_json(answers: Answers, bench: Workbench, dataset: Dataset) -> dict[str, Any]:
    without = _answers(bench)
    return {"metrics": metrics_json(without, dataset), "mcnemar": mcnemar_json(answers, without, dataset)}


def _answers(bench: Workbench) -> Answers:
    with bench:
        return SYSTEMS["hybrid"].answers(bench)


def section(results: Json, paper: Json) -> Section:
    levels, known = results["levels"], paper["sparsity"]
    tables = [_levels_table(levels, known)]
    if fields := results.get("fields"):
        tables.append(_without_table(fields, "enrichment-fields", "Without each part of the registration, %"))
    if fields := results.get("written_fields"):
        tables.append(_without_table(fields, "enrichment-written", "Without each field that enrichment writes, %"))
    figure = Figure(
        id="sparsity",
        caption="Raw and enriched with ever less of the owner's text, with 95 % intervals; diamonds are the paper's.",
        alt="Match@1 and Recall@15, raw and enriched, with full descriptions, first sentences and names only.",
        draw=lambda: sparsity(levels, known["levels"]),
    )
    return Section(
        id="enrichment",
        title="Enrichment and sparse registrations",
        summary=f"A seeded pool of {results['pool']:,} capabilities of `{results['dataset']}` with the "
        f"{results['queries']:,} queries for them. Hint is the first sentence, at most 150 characters. {INTERVALS}",
        tables=tuple(tables),
        figures=(figure,) if any(measured_only(level) for level in levels.values()) else (),
    )


def _levels_table(levels: Json, known: Json) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, level in levels.items():
        for arm in ("raw", "enriched"):
            test = gained_lost(level["mcnemar"]) if arm == "enriched" else NONE
            rows.append((name, arm, *measures(level[arm], _MEASURES), test))
            of_paper = known["levels"].get(name, {}).get(arm, {})
            rows.append(PaperRow((name, f"paper: {arm}", *measures(of_paper, _MEASURES), NONE)))
    return Table(
        id="enrichment-levels",
        caption="Raw and enriched by the owner's text, %",
        head=("text", "profiles", *_MEASURES, "gained / lost"),
        rows=tuple(rows),
        labels=2,
        notes=(
            f"The paper ({known['table']}) draws its own pool of {known['pool']:,} from ToolRet "
            f"({known['queries']:,} queries) and ranks with BM25 and a reranker; ours is another pool of other data, "
            "ranked by the first stage as shipped.",
            _MCNEMAR,
            *not_run_notes((name, level["enriched"]) for name, level in levels.items()),
        ),
    )


def _without_table(fields: Json, id: str, caption: str) -> Table:
    return Table(
        id=id,
        caption=caption,
        head=("without", *_MEASURES, "gained / lost"),
        rows=tuple(
            (name, *measures(one.get("metrics", one), _MEASURES), gained_lost(one.get("mcnemar")))
            for name, one in fields.items()
        ),
        notes=(_MCNEMAR, *not_run_notes(fields.items())),
    )


def sparsity(levels: Json, paper: Json) -> Canvas:
    """Raw and enriched profiles by the length of the owner's text: Match@1 and Recall@15."""
    figure, grid = panels(1, 2, height=4.9, sharey=True)
    for panel, (name, title) in zip(grid, (("match@1", "Match@1"), ("recall@15", "Recall@15")), strict=True):
        _arms(panel, levels, paper, name)
        panel.set(title=title, xlabel="the owner's text", ylim=(0, 103))
        panel.set_xticks(range(len(levels)), list(levels))
        panel.grid(visible=True, axis="y")
    grid[0].set_ylabel("queries or relevant capabilities, %\n(95 % interval)")
    legend_below(figure, grid[0], columns=3)
    return figure


def _arms(panel: Axes, levels: Json, paper: Json, name: str) -> None:
    for side, arm in enumerate(("raw", "enriched")):
        estimates = [None if not_run_reason(level[arm]) else level[arm][name] for level in levels.values()]
        if any(estimates):
            bars(panel, side, arm, estimates, vertical=True)
        else:
            panel.plot([], [], " ", label=f"{arm}: not run")
        at = [i + (-0.2, 0.2)[side] for i in range(len(levels))]
        of_paper = [100 * paper.get(level, {}).get(arm, {}).get(name, float("nan")) for level in levels]
        diamonds(panel, at, of_paper, label="the paper's" if arm == "enriched" else None)


EXPERIMENTS = (Experiment(name="enrichment", place=40, run=run, section=section),)
