"""Sections about running it: cost and time, four kinds in one registry, and when to say that nothing fits."""

from collections.abc import Iterator
from typing import Any

from mats.evaluation.reporting.cells import (
    NONE,
    NOT_RUN,
    Figure,
    Section,
    Table,
    joined,
    measure,
    number,
    percent,
)
from mats.evaluation.reporting.figures import latency, thresholds
from mats.evaluation.reporting.results import Json, ran, reason, reasons
from mats.evaluation.reporting.systems import INTERVALS


def efficiency(results: Json, paper: Json) -> Section:
    """Tokens, dollars and milliseconds."""
    systems, set_ = results["systems"], results["dataset"]
    known = paper["efficiency"]["rows"].get(paper["sets"].get(set_, {}).get("row", ""), {})
    rows: list[tuple[str, ...]] = []
    theirs = set()
    for name, one in systems.items():
        rows.append((name, *_costs(one)))
        their_name = paper["systems"].get(name, "")
        if their_name in known:
            theirs.add(len(rows))
            rows.append((f"paper: {their_name}", *_their_costs(known[their_name])))
    timed = {name: one for name, one in ran(systems).items() if one["ms"]}
    costs = Table(
        id="efficiency-cost",
        caption="What a query takes",
        head=(
            "system",
            "Match@1, %",
            "tokens in",
            "tokens out",
            "$ per 1,000 queries",
            "p50, ms",
            "p95, ms",
            "counted",
        ),
        rows=tuple(rows),
        theirs=frozenset(theirs),
        notes=(
            f"The paper ({paper['efficiency']['table']}) counts on its own data, models and machines; its pipelines "
            "are estimates after the fact.",
            *reasons((name, _why(one)) for name, one in systems.items()),
        ),
    )
    named = dict.fromkeys(stage for one in timed.values() for stage in one["ms"])
    stages = tuple(sorted(named, key=lambda stage: stage == "total"))
    by_stage = Table(
        id="efficiency-stages",
        caption="Time by stage, p50 / p95 in ms",
        head=("system", *stages),
        rows=tuple((name, *(_stage(one["ms"].get(stage)) for stage in stages)) for name, one in timed.items()),
    )
    drawn = Figure(
        id="latency",
        caption="Time by stage: the mark is the median, the line reaches to the 95th percentile; logarithmic.",
        alt=f"p50 and p95 in milliseconds of {joined(stages)} for {joined(timed)}.",
        draw=lambda: latency({name: one["ms"] for name, one in timed.items()}),
    )
    return Section(
        id="efficiency",
        title="Cost and time",
        says=f"Means per query over `{set_}`; what is marked as estimated is forecast from the real prompts.",
        tables=(costs, by_stage) if timed else (costs,),
        figures=(drawn,) if timed else (),
    )


def _why(one: Json) -> object:
    """A forecast says why it is one, as that which was not run does."""
    return {"not_run": one["why"]} if one.get("why") else one


def _costs(one: Json) -> tuple[str, ...]:
    if reason(one):
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


def _their_costs(one: Json) -> tuple[str, ...]:
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
        caption="By the kind that was meant, without and with saying so, %",
        head=("kind", "queries", "@1", "@15", "@1, kind said", "@15, kind said"),
        rows=tuple((kind, number(one["queries"]), *_said(one)) for kind, one in measured.items()),
        notes=("The paper reports no registry of several kinds.",),
    )
    columns = tuple(dict.fromkeys(kind for one in measured.values() for kind in one["first_of_kind"]))
    confusion = Table(
        id="kinds-confusion",
        caption="Kind of the first result (columns) by the kind that was meant (rows), nothing said, %",
        head=("meant", *columns),
        rows=tuple(
            (kind, *(percent(one["first_of_kind"].get(column)) for column in columns)) for kind, one in measured.items()
        ),
        notes=("What a row lacks to 100 are empty answers.",),
    )
    return Section(
        id="kinds",
        title="Four kinds in one registry",
        says=f"{results['documents']:,} models, agents, tools and skills together. {INTERVALS}",
        tables=(accuracy, confusion),
    )


def _said(one: Json) -> Iterator[str]:
    for arm in ("without_intent", "with_intent"):
        for name in ("match@1", "match@15"):
            yield measure(one[arm], name)


def abstention(results: Json, paper: Json) -> Section:
    """When to say that nothing fits."""
    accepted = results["false_accept"]
    grid = results["thresholds"]
    step = max(1, round(len(grid) / 20))
    shown = [i for i in range(len(grid)) if i % step == 0 or grid[i] in results["chosen"].values()]
    table = Table(
        id="abstention-thresholds",
        caption="Wrongly refused and wrongly accepted by threshold, %",
        head=("threshold", "wrongly refused", *(f"accepted: {kind}" for kind in accepted)),
        rows=tuple(
            (
                _threshold(grid[i], results["chosen"]),
                percent(results["false_reject"][i]),
                *(percent(shares[i]) for shares in accepted.values()),
            )
            for i in shown
        ),
        notes=(
            "Bereft: queries whose right answers were taken out of the registry. Gibberish: words of no meaning.",
            "The paper reports no abstention.",
        ),
    )
    drawn = Figure(
        id="abstention",
        caption="Wrongly refused and wrongly accepted against the threshold; upright lines are the shipped ones.",
        alt="Share of good queries refused rises and share of hopeless ones accepted falls as the threshold grows.",
        draw=lambda: thresholds(results),
    )
    return Section(
        id="abstention",
        title="When nothing fits",
        says=f"Best scores without an LLM over {joined(results['sets'])}, against a threshold.",
        tables=(table,),
        figures=(drawn,),
    )


def _threshold(value: float, chosen: Json) -> str:
    names = [name for name, at in chosen.items() if at == value]
    return f"{value:.3f}" + (f" ({joined(names)})" if names else "")
