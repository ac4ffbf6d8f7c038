"""Cost and latency of a query."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from experiments.report.cells import NONE, NOT_RUN, Figure, PaperRow, Section, Table, comma_list, number, percent
from experiments.report.results import measured_only, not_run_notes, not_run_reason
from experiments.report.style import COLOURS, INK, MARKERS, legend_below, panels
from experiments.studies.context import OURS, Experiment, ExperimentContext, first_is_right
from experiments.variants import SYSTEMS
from mats.domain.prompts.usage import Usage
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers
from mats.evaluation.systems.score import stage_percentiles

_NO_TIME = 0.01
"""Milliseconds, the precision of results; a logarithmic axis has no zero."""


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
    sets, name = _sets(results), results["dataset"]
    systems = sets[name]
    times = {system: one["ms"] for system, one in measured_only(systems).items() if one["ms"]}
    stages = stages_of(times)
    by_stage = Table(
        id="efficiency-stages",
        caption="Latency by stage, p50 / p95 in ms",
        head=("system", *stages),
        rows=tuple((system, *(_percentiles(took.get(stage)) for stage in stages)) for system, took in times.items()),
    )
    figure = Figure(
        id="latency",
        caption="Latency by stage: the marker is the median, the line ends at the 95th percentile; logarithmic.",
        alt=f"p50 and p95 in milliseconds of {comma_list(stages)} for {comma_list(times)}.",
        draw=lambda: latency(times),
    )
    costs = _costs(sets, paper)
    return Section(
        id="efficiency",
        title="Cost and latency",
        summary=f"Means per query; latency over `{name}`. The total of a query does not count waiting for other "
        "queries.",
        tables=(costs, by_stage) if times else (costs,),
        figures=(figure,) if times else (),
    )


def _percentiles(times: Json | None) -> str:
    return f"{times['p50']:,.1f} / {times['p95']:,.1f}" if times else NONE


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


def stages_of(systems: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The stages of all systems, the total last."""
    names = dict.fromkeys(stage for times in systems.values() for stage in times)
    return sorted(names, key=lambda stage: stage == "total")


def latency(systems: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Canvas:
    """p50 as a marker and p95 as the end of a line, for every stage of every system that is not instantaneous."""
    systems = {
        name: {stage: took for stage, took in times.items() if took["p95"] >= _NO_TIME}
        for name, times in systems.items()
    }
    stages = stages_of(systems)
    looks: dict[str, dict[str, Any]] = {
        stage: {
            "color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], "markersize": 9,
            "markeredgecolor": INK, "markeredgewidth": 0.7,
        }
        for i, stage in enumerate(stages)
    }  # fmt: skip
    height = 0.2 * sum(len(times) for times in systems.values()) + 0.2 * len(systems)
    figure, (panel,) = panels(1, 1, height=1.9 + max(1.6, height) + 0.3 * (len(stages) // 5))
    y, middles = 0.0, []
    for times in systems.values():
        start = y
        for stage in sorted(times, key=stages.index):
            low, high, colour = max(times[stage]["p50"], _NO_TIME), times[stage]["p95"], looks[stage]["color"]
            panel.plot([low, high], [y, y], color=colour, linewidth=2.6, solid_capstyle="butt")
            panel.plot([high], [y], marker="|", markersize=11, markeredgewidth=2.2, color=colour)
            panel.plot([low], [y], linestyle="none", **looks[stage])
            y += 1.0
        middles.append((start + y - 1) / 2)
        if len(middles) < len(systems):
            panel.axhline(y - 0.1, color=INK, linewidth=0.5, alpha=0.5)
        y += 0.8
    for stage in stages:
        panel.plot([], [], label=stage, **looks[stage])
    panel.set(xscale="log", xlabel="milliseconds (log scale): marker p50, line to p95", ylim=(y - 1.1, -0.8))
    low, high = panel.get_xlim()
    panel.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0,) if high / low > 100 else (1.0, 2.0, 5.0)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_yticks(middles, list(systems))
    panel.tick_params(axis="y", length=0)
    panel.grid(visible=True, axis="x")
    legend_below(figure, panel, columns=5)
    return figure


def finding(results: Json) -> str:
    measured = measured_only(_sets(results).get(results["dataset"], {}))
    ours, whole = measured.get(OURS), measured.get("full-ctx")
    if not ours:
        return ""
    prompt = f"; `full-ctx` reads {number(whole['input_tokens'])} tokens for a query" if whole else ""
    return f"Cost: `{OURS}` calls no model and takes {ours['ms']['total']['p50']:.1f} ms (median){prompt}."


EXPERIMENTS = (Experiment(name="efficiency", place=120, run=run, section=section, finding=finding),)
