"""Enrichment: raw against enriched profiles, with ever less of the owner's text, and field by field."""

import random
from collections.abc import Callable, Mapping, Sequence
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
    comma_list,
    gained_lost,
    measures,
    number,
    percent,
)
from experiments.report.results import if_run, measured_only, not_run_notes, not_run_reason, part
from experiments.report.style import (
    bars,
    diamonds,
    legend_below,
    panels,
)
from experiments.studies.context import OURS, Experiment, ExperimentContext, mcnemar_json, outcome
from experiments.variants import SYSTEMS
from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Enrichment
from mats.domain.text.words import first_sentence
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import SEED
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers
from mats.ports import NO_LABELS, Labels, Writer, Written

PAPERS = "pipeline-bm25"  # The paper's pipeline of its ablations
ABLATION = ("appworld", "toolret", "skills", "tools", "mcp-tools-closed")
"""The paper's three sets, and what stands for them."""
POOL, FIELDS_POOL = 1_000, 500
_HINT = 150  # Characters of the first sentence, as in the paper
_WRITTEN = tuple(Enrichment.model_fields)
LEVELS: Mapping[str, Callable[[Registration], Registration]] = {
    "full": lambda r: _with_description(r, r.description),
    "hint": lambda r: _with_description(r, first_sentence(r.description, _HINT)),
    "name-only": lambda r: _with_description(r, ""),
}
_MEASURES = ("match@1", "match@3", "recall@15")
_MCNEMAR = "Gained and lost are queries whose first result became right or wrong; p is exact McNemar, two-sided."


def _with_description(registration: Registration, description: str) -> Registration:
    """A registration of name and description, as in the paper's pool."""
    return Registration(
        namespace=registration.namespace, name=registration.name, kind=registration.kind, description=description
    )


@dataclass(frozen=True, slots=True)
class SingleFieldWriter:
    writer: Writer
    field: str

    @property
    def name(self) -> str:
        """Differs from the writer's name, so that the profiles have another origin."""
        return f"{self.writer.name}, {self.field} only"

    @property
    def prompt(self) -> str:
        return self.writer.prompt

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        written = self.writer.describe(registration, labels)
        only = Enrichment(**{self.field: getattr(written.enrichment, self.field)})
        return replace(written, enrichment=only)


def run(context: ExperimentContext) -> dict[str, Any]:
    """Raw against enriched at three levels of the owner's text and on whole sets; then field by field."""
    whole = context.dataset(context.large_set)
    pool = sample_pool(whole)
    levels = {name: _compare(context, _with_registrations(pool, cut), OURS, PAPERS) for name, cut in LEVELS.items()}
    pools = [sample_pool(context.dataset(name)) for name in ABLATION if name in context.sets]
    return {
        "dataset": whole.name,
        "variant": OURS,
        "pool": len(pool.registrations),
        "queries": len(pool.queries),
        "levels": {name: level[OURS] for name, level in levels.items()},
        "reranked": {name: level[PAPERS] for name, level in levels.items()},
        "ablation": {
            f"{one.name}, {len(one.registrations):,}": _compare(context, one, PAPERS)[PAPERS] for one in pools
        },
        "added_fields": _added_fields(context, sample_pool(whole, FIELDS_POOL)),
    }


def sample_pool(dataset: Dataset, size: int = POOL) -> Dataset:
    """A seeded sample of capabilities with the queries that have a relevant one in it."""
    registrations = random.Random(SEED).sample(list(dataset.registrations), min(size, len(dataset.registrations)))
    ids = {registration.id for registration in registrations}
    queries = [
        replace(query, relevant=query.relevant & ids) for query in dataset.queries if not query.relevant.isdisjoint(ids)
    ]
    return replace(dataset, registrations=registrations, queries=queries)


def _with_registrations(dataset: Dataset, change: Callable[[Registration], Registration]) -> Dataset:
    return replace(dataset, registrations=[change(registration) for registration in dataset.registrations])


def _compare(context: ExperimentContext, pool: Dataset, *variants: str) -> dict[str, dict[str, Any]]:
    """By variant: the measures over raw and over enriched profiles, and the paired test."""
    lacking = context.lacking({"llm"})
    raw, _ = _answers(context, pool, variants)
    enriched, empty = (
        (dict.fromkeys(variants, lacking), None)
        if lacking
        else _answers(context, pool, variants, context.models.writer)
    )
    return {
        variant: {
            "raw": outcome(raw[variant], pool),
            "enriched": outcome(enriched[variant], pool),
            "mcnemar": mcnemar_json(raw[variant], enriched[variant], pool),
            "empty_summaries": empty,
        }
        for variant in variants
    }


def _answers(
    context: ExperimentContext, pool: Dataset, variants: Sequence[str], writer: Writer | None = None
) -> tuple[dict[str, Answers | str], int]:
    """The answers of each variant over one registry, or why there are none; and how many summaries are empty."""
    with context.bench_of(pool, writer=writer) as bench:
        context.log(f"{pool.name}: {comma_list(variants)}, {writer.name if writer else 'raw'}")
        answers = {name: context.lacking(SYSTEMS[name].needs) or SYSTEMS[name].answers(bench) for name in variants}
        profiles = bench.discover.retrieve.index.fetch([registration.id for registration in pool.registrations])
        return answers, sum(not profile.enrichment.summary for profile in profiles.values())


def _added_fields(context: ExperimentContext, pool: Dataset) -> dict[str, Any]:
    """Over raw profiles, then with each written field alone."""
    if lacking := context.lacking({"llm"}):
        return {"not_run": lacking}
    raw = _answers(context, pool, [PAPERS])[0][PAPERS]
    results = {"none": {"metrics": outcome(raw, pool), "mcnemar": None}}
    for name in _WRITTEN:
        one, _ = _answers(context, pool, [PAPERS], SingleFieldWriter(context.models.writer, name))
        results[name] = _changed(raw, one[PAPERS], pool)
    return results


def _changed(before: Answers | str, after: Answers | str, dataset: Dataset) -> dict[str, Any]:
    return {"metrics": outcome(after, dataset), "mcnemar": mcnemar_json(before, after, dataset)}


def section(results: Json, paper: Json) -> Section:
    levels, known = results["levels"], paper["sparsity"]
    reranked, added = part(results, "reranked", "enrichment"), part(results, "added_fields", "enrichment")
    shown, system = (reranked, PAPERS) if any(map(_has_both, reranked.values())) else (levels, OURS)
    fields, ablation = paper["fields"], paper["ablation"]
    tables = (
        _arms_table("enrichment-levels", f"`{OURS}` by the owner's text, %", levels, {}),
        _arms_table(
            "enrichment-reranked", f"`{PAPERS}` by the owner's text, %", reranked, known["levels"],
            f"The paper ({known['table']}) draws its own pool of {known['pool']:,} from ToolRet with "
            f"{known['queries']:,} queries. Of its {known['pool']:,} summaries of bare names "
            f"{known['empty_summaries']:,} are empty, of ours {number(_empty_summaries(reranked))}.",
        ),
        _arms_table(
            "enrichment-ablation", f"`{PAPERS}` over raw and enriched registries of at most {POOL:,}, %",
            part(results, "ablation", "enrichment"), ablation["rows"],
            f"The paper ({ablation['table']}) gives recall at a k that it does not name, and {ablation['differs']}.",
        ),
        _fields_table(
            "enrichment-added", f"`{PAPERS}` with each written field alone, %", added, fields["match@1"],
            f"{fields['pool']:,} capabilities. The paper ({fields['table']}) names only its best field.",
        ),
    )  # fmt: skip
    figure = Figure(
        id="sparsity",
        caption=f"`{system}`, raw and enriched with ever less of the owner's text, with 95 % intervals; diamonds are "
        "the paper's, with a reranker.",
        alt="Match@1 and Recall@15, raw and enriched, with full descriptions, first sentences and names only.",
        draw=lambda: sparsity(shown, known["levels"]),
    )
    return Section(
        id="enrichment",
        title="Enrichment and sparse registrations",
        summary=f"A seeded pool of {results['pool']:,} capabilities of `{results['dataset']}` with the "
        f"{results['queries']:,} queries for them. Hint is the first sentence, at most 150 characters. {INTERVALS}",
        tables=tables,
        figures=(figure,) if any(measured_only(level) for level in levels.values()) else (),
    )


def _has_both(level: object) -> bool:
    return isinstance(level, Mapping) and {"raw", "enriched"} <= measured_only(level).keys()


def _empty_summaries(levels: Json) -> int | None:
    return None if not_run_reason(levels) else levels["name-only"]["empty_summaries"]


def _arms_table(id: str, caption: str, levels: Json, known: Json, *notes: str) -> Table:
    """Raw and enriched, ours with the paper's below."""
    rows: list[tuple[str, ...]] = []
    ours = if_run(levels)
    for name in dict.fromkeys((*ours, *known)):
        for arm in ("raw", "enriched"):
            if level := ours.get(name):
                test = gained_lost(level["mcnemar"]) if arm == "enriched" else NONE
                rows.append((name, arm, *measures(level[arm], _MEASURES), test))
            if of_paper := known.get(name, {}).get(arm):
                recall = {"recall@15": of_paper.get("recall@k"), **of_paper}
                rows.append(PaperRow((name, f"paper: {arm}", *measures(recall, _MEASURES), NONE)))
    return Table(
        id=id,
        caption=caption,
        head=("text or set", "profiles", *_MEASURES, "gained / lost"),
        rows=tuple(rows),
        labels=2,
        notes=(
            *notes,
            _MCNEMAR,
            *not_run_notes([("this table", levels)]),
            *not_run_notes((f"{name} {arm}", one) for name, level in ours.items() for arm, one in level.items()),
        ),
    )


def _fields_table(id: str, caption: str, fields: Json, known: Mapping[str, float], *notes: str) -> Table:
    ours = if_run(fields)
    rows = [
        (name, *measures(one.get("metrics", one), _MEASURES), gained_lost(one.get("mcnemar")))
        for name, one in ours.items()
    ]
    of_paper = [PaperRow((f"paper: {name}", percent(share), *[NONE] * len(_MEASURES))) for name, share in known.items()]
    return Table(
        id=id,
        caption=caption,
        head=("field", *_MEASURES, "gained / lost"),
        rows=(*rows, *of_paper),
        notes=(*notes, _MCNEMAR, *not_run_notes([("this table", fields)]), *not_run_notes(ours.items())),
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
            bars(panel, side, arm, estimates)
        else:
            panel.plot([], [], " ", label=f"{arm}: not run")
        at = [i + (-0.2, 0.2)[side] for i in range(len(levels))]
        of_paper = [100 * paper.get(level, {}).get(arm, {}).get(name, float("nan")) for level in levels]
        diamonds(panel, at, of_paper, label="the paper's" if arm == "enriched" else None)


EXPERIMENTS = (Experiment(name="enrichment", place=40, run=run, section=section),)
