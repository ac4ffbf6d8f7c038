"""Sections about operation: cost and latency, four kinds in one registry, and abstention."""

from experiments.report.cells import (
    INTERVALS,
    NONE,
    NOT_RUN,
    Figure,
    PaperRow,
    Section,
    Table,
    comma_list,
    measures,
    number,
    percent,
)
from experiments.report.figures import QUERY_CLASSES, latency, stages_of, thresholds
from experiments.report.results import measured_only, not_run_notes, not_run_reason
from mats.evaluation.results import Json


def efficiency(results: Json, paper: Json) -> Section:
    systems, name = results["systems"], results["dataset"]
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
    costs = _costs(systems, paper, row=paper["sets"].get(name, {}).get("row", ""))
    bounds = results.get("at_most", {})  # measured before budgets replaced them
    tables = (costs, _bounds(bounds)) if bounds else (costs,)
    return Section(
        id="efficiency",
        title="Cost and latency",
        summary=f"Means per query over `{name}`, and bounds that hold for any model. The total of a query does not "
        "count waiting for other queries.",
        tables=(*tables, by_stage) if times else tables,
        figures=(figure,) if times else (),
    )


def _percentiles(times: Json | None) -> str:
    return f"{times['p50']:,.1f} / {times['p95']:,.1f}" if times else NONE


def _costs(systems: Json, paper: Json, row: str) -> Table:
    known = paper["efficiency"]["rows"].get(row, {})
    rows: list[tuple[str, ...]] = []
    for name, one in systems.items():
        rows.append((name, *_cells(one)))
        if of_paper := known.get(paper["systems"].get(name, "")):
            source = "estimated" if of_paper["estimated"] else "measured"
            cells = percent(of_paper["match@1"]), *_tokens(of_paper), number(of_paper["p50_ms"]), NONE, source
            rows.append(PaperRow((f"paper: {paper['systems'][name]}", *cells)))
    return Table(
        id="efficiency-cost",
        caption="Cost and latency of a query",
        head=(
            "system", "Match@1, %", "tokens in", "tokens out", "$ per 1,000 queries", "p50, ms", "p95, ms", "counted",
        ),
        rows=tuple(rows),
        notes=(
            f"The paper ({paper['efficiency']['table']}) counts on its own data, models and machines; its pipelines "
            "are estimates after the fact.",
            *not_run_notes(systems.items()),
        ),
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


def _bounds(bounds: Json) -> Table:
    rows = tuple(
        (name, one["model"], *(f"≤ {cell}" for cell in (number(one["calls"]), *_tokens(one))))
        for name, one in bounds.items()
    )
    return Table(
        id="efficiency-bounds",
        caption="What a query costs at most",
        head=("system", "model", "calls", "tokens in", "tokens out", "$ per 1,000 queries"),
        rows=rows,
        labels=2,
        notes=(
            "Bounds, not measurements: each byte of a prompt counts as a token (English has about four bytes a token), "
            "every turn is taken, and every reply is as long as allowed. A system with several turns usually stays "
            "further below its bound than one with a single call, so compare bounds with bounds only.",
        ),
    )


def kinds(results: Json, paper: Json) -> Section:
    by_kind = results["kinds"]
    arms, match = ("without_intent", "with_intent"), ("match@1", "match@15")
    accuracy = Table(
        id="kinds-accuracy",
        caption="By the kind of the query, without and with a kind filter, %",
        head=("kind", "queries", "@1", "@15", "@1, filtered", "@15, filtered"),
        rows=tuple(
            (kind, number(one["queries"]), *(cell for arm in arms for cell in measures(one[arm], match)))
            for kind, one in by_kind.items()
        ),
        notes=("The paper reports no registry of several kinds.",),
    )
    columns = tuple(dict.fromkeys(kind for one in by_kind.values() for kind in one["first_of_kind"]))
    confusion = Table(
        id="kinds-confusion",
        caption="Kind of the first result (columns) by the kind of the query (rows), without a filter, %",
        head=("query", *columns),
        rows=tuple((kind, *measures(one["first_of_kind"], columns)) for kind, one in by_kind.items()),
        notes=("The rest of a row to 100 is empty answers.",),
    )
    return Section(
        id="kinds",
        title="Four kinds in one registry",
        summary=f"{results['documents']:,} models, agents, tools and skills together. {INTERVALS}",
        tables=(accuracy, confusion),
    )


def abstention(results: Json, paper: Json) -> Section:
    accepted, chosen, grid = results["false_accept"], results["chosen"], results["thresholds"]
    step = max(1, round(len(grid) / 20))
    rows = tuple(
        (
            _threshold(at, chosen),
            percent(results["false_reject"][i]),
            *(percent(shares[i]) for shares in accepted.values()),
        )
        for i, at in enumerate(grid)
        if i % step == 0 or at in chosen.values()
    )
    table = Table(
        id="abstention-thresholds",
        caption="False rejects and false accepts by threshold, %",
        head=("threshold", "false rejects", *(f"false accepts: {QUERY_CLASSES[kind]}" for kind in accepted)),
        rows=rows,
        notes=(
            "Capability missing: the relevant capabilities of a query are not in the registry. Gibberish: random "
            "letters.",
            "The paper reports no abstention.",
        ),
    )
    figure = Figure(
        id="abstention",
        caption="False rejects and false accepts against the threshold; vertical lines are the shipped thresholds.",
        alt="The share of false rejects rises and the share of false accepts falls as the threshold grows.",
        draw=lambda: thresholds(results),
    )
    return Section(
        id="abstention",
        title="Abstention",
        summary=f"The best score of each query without an LLM over {comma_list(results['sets'])}, against a threshold.",
        tables=(table,),
        figures=(figure,),
    )


def _threshold(value: float, chosen: Json) -> str:
    names = [name for name, at in chosen.items() if at == value]
    return f"{value:.3f}" + (f" ({comma_list(names)})" if names else "")
