"""Cost and latency of a query."""

from typing import Any

from experiments.report.cells import NONE, NOT_RUN, PaperRow, Section, Table, number, percent
from experiments.report.results import measured_only, not_run_notes, not_run_reason
from experiments.studies.context import OURS, Experiment, ExperimentContext, first_is_right
from experiments.variants import SYSTEMS
from mats.domain.prompts.usage import Usage
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers
from mats.evaluation.systems.score import stage_percentiles


def run(context: ExperimentContext) -> dict[str, Any]:
    """Calls, tokens in and out per query, dollars per 1,000 queries, p50 and p95 of each stage, as measured."""
    return {
        "dataset": context.large_set,
        "sets": {
            name: {"systems": {variant: context.result(name, variant, _cost_json) for variant in SYSTEMS}}
            for name in context.sets
        },
    }


def _cost_json(answers: Answers, dataset: Dataset) -> dict[str, Any]:
    calls = sum(answer.calls for answer in answers.values())
    return {
        "match@1": round(float(first_is_right(answers, dataset).mean()), 4),
        **_per_query(calls, Usage.total(answer.usage for answer in answers.values()), len(answers)),
        "ms": stage_percentiles(answers),
    }


def _per_query(calls: int, usage: Usage, queries: int) -> dict[str, float | None]:
    return {
        "calls": round(calls / queries, 2),
        "input_tokens": round(usage.input_tokens / queries, 1),
        "output_tokens": round(usage.output_tokens / queries, 1),
        "usd_per_1000": None if usage.usd is None else round(1_000 * usage.usd / queries, 5),
    }


def section(results: Json, paper: Json) -> Section:
    return Section(
        id="efficiency",
        title="Cost and latency",
        summary="Means per query; its latency does not count waiting for other queries.",
        tables=(_costs(_sets(results), paper),),
    )


def _sets(results: Json) -> Json:
    """Systems by set; earlier results have those of one set."""
    sets = results.get("sets", {results["dataset"]: results})
    return {name: one["systems"] for name, one in sets.items()}


def _costs(sets: Json, paper: Json) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, systems in sets.items():
        known = paper["efficiency"]["rows"].get(paper["sets"].get(name, {}).get("row", ""), {})
        for system, one in systems.items():
            rows.append((name, system, *_cells(one)))
            if of_paper := known.get(paper["systems"].get(system, "")):
                source = "estimated" if of_paper["estimated"] else "measured"
                cells = percent(of_paper["match@1"]), *_tokens(of_paper), number(of_paper["p50_ms"]), NONE, source
                rows.append(PaperRow((name, f"paper: {paper['systems'][system]}", *cells)))
    return Table(
        id="efficiency-cost",
        caption="Cost and latency of a query",
        head=(
            "set", "system", "Match@1, %", "tokens in", "tokens out", "$ per 1,000 queries", "p50, ms", "p95, ms",
            "counted",
        ),
        rows=tuple(rows),
        notes=(
            f"The paper ({paper['efficiency']['table']}) counts on its own data, models and machines; its pipelines "
            "are estimates after the fact.",
            *not_run_notes((system, one) for systems in sets.values() for system, one in systems.items()),
        ),
        labels=2,
    )  # fmt: skip


def _cells(one: Json) -> tuple[str, ...]:
    if not_run_reason(one):
        return (NOT_RUN,) * 7
    total = one["ms"].get("total", {})
    return (
        percent(one["match@1"]),
        *_tokens(one),
        number(total.get("p50"), 1),
        number(total.get("p95"), 1),
        "measured",
    )


def _tokens(one: Json) -> tuple[str, ...]:
    return number(one["input_tokens"]), number(one["output_tokens"]), number(one["usd_per_1000"], 4)


def finding(results: Json) -> str:
    measured = measured_only(_sets(results).get(results["dataset"], {}))
    ours, whole = measured.get(OURS), measured.get("full-ctx")
    if not ours:
        return ""
    prompt = f"; `full-ctx` reads {number(whole['input_tokens'])} tokens for a query" if whole else ""
    return f"Cost: `{OURS}` calls no model and takes {ours['ms']['total']['p50']:.1f} ms (median){prompt}."


EXPERIMENTS = (Experiment(name="efficiency", place=120, run=run, section=section, finding=finding),)
