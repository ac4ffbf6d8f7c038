"""Sections about operation: cost and latency, four kinds in one registry, and abstention."""

from collections.abc import Iterator
from typing import Any

from mats.evaluation.reporting.cells import (
    NONE,
    NOT_RUN,
    Figure,
    Section,
    Table,
    comma_list,
    measure,
    number,
    percent,
)
from mats.evaluation.reporting.figures import QUERY_CLASSES, latency, thresholds
from mats.evaluation.reporting.results import Json, measured_only, not_run_notes, not_run_reason
from mats.evaluation.reporting.system_sections import INTERVALS


def efficiency(results: Json, paper: Json) -> Section:
    """Tokens, dollars and milliseconds per query."""
    systems, set_ = results["systems"], results["dataset"]
    times = {name: one["ms"] for name, one in measured_only(systems).items() if one["ms"]}
    names = dict.fromkeys(stage for stages in times.values() for stage in stages)
    stages = tuple(sorted(names, key=lambda stage: stage == "total"))
    by_stage = Table(
        id="efficiency-stages",
        caption="Latency by stage, p50 / p95 in ms",
        head=("system", *stages),
        rows=tuple((name, *(_stage(took.get(stage)) for stage in stages)) for name, took in times.items()),
    )
    figure = Figure(
        id="latency",
        caption="Latency by stage: the marker is the median, the line ends at the 95th percentile; logarithmic.",
        alt=f"p50 and p95 in milliseconds of {comma_list(stages)} for {comma_list(times)}.",
        draw=lambda: latency(times),
    )
    costs = _cost_table(systems, set_, paper)
    return Section(
        id="efficiency",
        title="Cost and latency",
        summary=f"Means per query over `{set_}`; estimates count the tokens of prompts without asking a model.",
        tables=(costs, by_stage) if times else (costs,),
        figures=(figure,) if times else (),
    )


def _cost_table(systems: Json, set_: str, paper: Json) -> Table:
    known = paper["efficiency"]["rows"].get(paper["sets"].get(set_, {}).get("row", ""), {})
    rows: list[tuple[str, ...]] = []
    paper_rows = set()
    for name, one in systems.items():
        rows.append((name, *_costs(one)))
        paper_name = paper["systems"].get(name, "")
        if paper_name in known:
            paper_rows.add(len(rows))
            rows.append((f"paper: {paper_name}", *_paper_costs(known[paper_name])))
    return Table(
        id="efficiency-cost",
        caption="Cost and latency of a query",
        head=(
            "system", "Match@1, %", "tokens in", "tokens out", "$ per 1,000 queries", "p50, ms", "p95, ms", "counted",
        ),
        rows=tuple(rows),
        paper_rows=frozenset(paper_rows),
        notes=(
            f"The paper ({paper['efficiency']['table']}) counts on its own data, models and machines; its pipelines "
            "are estimates after the fact.",
            *not_run_notes((name, _why(one)) for name, one in systems.items()),
        ),
    )  # fmt: skip


def _why(one: Json) -> object:
    """An estimate with its reason in the form of a system that was not run."""
    return {"not_run": one["why"]} if one.get("why") else one


def _costs(one: Json) -> tuple[str, ...]:
    if not_run_reason(one):
        return (NOT_RUN,) * 7
    total = one["ms"].get("total", {})
    return (
        NOT_RUN if one["match@1"] is None else percent(one["match@1"]),
        number(one["input_tokens"]),
        number(one["output_tokens"]),
        number(one["usd_per_1000"], 4),
        number(total.get("p50"), 1),
        number(total.get("p95"), 1),
        "estimated" if one["estimated"] else "measured",
    )


def _paper_costs(one: Json) -> tuple[str, ...]:
    return (
        percent(one["match@1"]),
        number(one["input_tokens"]),
        number(one["output_tokens"]),
        number(one["usd_per_1000"], 4),
        number(one["p50_ms"]),
        NONE,
        "estimated" if one["estimated"] else "measured",
    )


def _stage(times: Any) -> str:
    return NONE if not times else f"{times['p50']:,.1f} / {times['p95']:,.1f}"


def kinds(results: Json, paper: Json) -> Section:
    """Four kinds in one registry."""
    measured = results["kinds"]
    accuracy = Table(
        id="kinds-accuracy",
        caption="By the kind of the query, without and with a kind filter, %",
        head=("kind", "queries", "@1", "@15", "@1, filtered", "@15, filtered"),
        rows=tuple((kind, number(one["queries"]), *_kind_cells(one)) for kind, one in measured.items()),
        notes=("The paper reports no registry of several kinds.",),
    )
    columns = tuple(dict.fromkeys(kind for one in measured.values() for kind in one["first_of_kind"]))
    confusion = Table(
        id="kinds-confusion",
        caption="Kind of the first result (columns) by the kind of the query (rows), without a filter, %",
        head=("query", *columns),
        rows=tuple(
            (kind, *(percent(one["first_of_kind"].get(column)) for column in columns)) for kind, one in measured.items()
        ),
        notes=("The rest of a row to 100 is empty answers.",),
    )
    return Section(
        id="kinds",
        title="Four kinds in one registry",
        summary=f"{results['documents']:,} models, agents, tools and skills together. {INTERVALS}",
        tables=(accuracy, confusion),
    )


def _kind_cells(one: Json) -> Iterator[str]:
    for arm in ("without_intent", "with_intent"):
        for name in ("match@1", "match@15"):
            yield measure(one[arm], name)


def abstention(results: Json, paper: Json) -> Section:
    """Abstention: the threshold below which nothing fits."""
    accepted = results["false_accept"]
    grid = results["thresholds"]
    step = max(1, round(len(grid) / 20))
    shown = [i for i in range(len(grid)) if i % step == 0 or grid[i] in results["chosen"].values()]
    table = Table(
        id="abstention-thresholds",
        caption="False rejects and false accepts by threshold, %",
        head=("threshold", "false rejects", *(f"false accepts: {QUERY_CLASSES[kind]}" for kind in accepted)),
        rows=tuple(
            (
                _threshold(grid[i], results["chosen"]),
                percent(results["false_reject"][i]),
                *(percent(shares[i]) for shares in accepted.values()),
            )
            for i in shown
        ),
        notes=(
            "Gold removed: the relevant capabilities of a query are not in the registry. Gibberish: random letters.",
            "The paper reports no abstention.",
        ),
    )
    drawn = Figure(
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
        figures=(drawn,),
    )


def _threshold(value: float, chosen: Json) -> str:
    names = [name for name, at in chosen.items() if at == value]
    return f"{value:.3f}" + (f" ({comma_list(names)})" if names else "")
