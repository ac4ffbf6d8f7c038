"""The main table: every measure of every system on every set."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas

from experiments.report.cells import INTERVALS, NONE, Figure, Section, Table, measure, number, percent
from experiments.report.results import measured_only, not_run_notes
from experiments.report.style import PER_CENT, legend_below, look_of, panels
from experiments.studies.context import OURS, PLAIN_BM25, Experiment, ExperimentContext
from experiments.variants import SYSTEMS
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import Values, estimate, per_query
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers, run_of
from mats.evaluation.systems.score import dataset_json, estimate_json, failures_json, metrics_json
from mats.settings import TITAN

_TITAN = "pipeline-dense, titan"
_PAIR = ("pipeline-hybrid", "search-and-pick")
_CROSS = ("full-ctx", "pipeline-bm25", "hybrid", "bm25")
_OTHERS = ("match@3", "match@5", "match@15", "mrr", "recall@15")


def run(context: ExperimentContext) -> dict[str, Any]:
    """Every measure of every system on every set, and its paired gain over plain BM25.

    A system without its model has `not_run` with the reason.
    """
    return {"k": context.models.settings.k, "sets": {name: _main_of(context, name) for name in context.sets}}


def _main_of(context: ExperimentContext, name: str) -> dict[str, Any]:
    plain = context.answers(name, "bm25")

    def measures(defined: Collection[str], answers: Answers, dataset: Dataset) -> dict[str, Any]:
        values = per_query(run_of(answers), dataset.queries)
        baseline = {} if isinstance(plain, str) else per_query(run_of(plain), dataset.queries)
        return {
            "metrics": metrics_json(answers, dataset, defined),
            "over_bm25": {
                name: estimate_json(estimate(values[name] - before)) if name in defined else None
                for name, before in baseline.items()
            },
            "sources": _by_source(values["match@1"], dataset),
            **failures_json(answers),
        }

    systems = {
        name_of: context.result(name, name_of, partial(measures, variant.measures))
        for name_of, variant in SYSTEMS.items()
    }
    return {**dataset_json(context.dataset(name)), "systems": systems}


def _by_source(hits: Values, dataset: Dataset) -> dict[str, dict[str, float]]:
    """Match@1 of the queries of every source."""
    by: dict[str, list[float]] = {}
    for query, hit in zip(dataset.queries, hits, strict=True):
        by.setdefault(query.source or "unnamed", []).append(float(hit))
    return {name: {"queries": len(each), "match@1": round(sum(each) / len(each), 4)} for name, each in by.items()}


def section(results: Json, paper: Json) -> Section:
    sets = _with_titan(results)
    ran = {name: measured_only(one["systems"]) for name, one in sets.items()}
    named = tuple(dict.fromkeys(system for one in sets.values() for system in one["systems"]))
    figure = Figure(
        id="scaling-cross",
        caption=f"Match@1 of {', '.join(_CROSS)}, as far as they were run, on each set by its size.",
        alt="Match@1 with 95 % intervals against the number of capabilities, one point for each system and set.",
        draw=lambda: _cross(sets, ran),
    )
    return Section(
        id="main",
        title="Main table",
        summary=f"Every system on every set, {number(results['k'])} candidates per query. {INTERVALS}",
        tables=(
            _match_at_1(sets, paper, _best_first(ran, named)),
            *_papers_own(sets, paper, [system for system in named if not any(system in one for one in ran.values())]),
            _others(ran, paper),
            _sources(sets, ran, paper),
            _retrievers(sets, ran, paper),
        ),
        figures=(figure,) if any(system in one for one in ran.values() for system in _CROSS) else (),
    )


def _cross(sets: Json, ran: Json) -> Canvas:
    """Other sets differ in more than size: no line connects them."""
    figure, (panel,) = panels(1, height=4.6)
    for system, look in look_of(_CROSS).items():
        sizes = [sets[name]["documents"] for name, one in ran.items() if system in one]
        estimates = [one[system]["metrics"]["match@1"] for one in ran.values() if system in one]
        means, lows, highs = ([100 * estimate[key] for estimate in estimates] for key in ("mean", "low", "high"))
        intervals = np.subtract(means, lows), np.subtract(highs, means)
        look |= {"linestyle": "none", "label": system if sizes else f"{system}: not run"}
        panel.errorbar(sizes, means, yerr=intervals, capsize=3, **look)
    panel.set(xscale="log", ylim=(0, 103), xlabel="capabilities (log scale)", ylabel=PER_CENT)
    panel.grid(visible=True)
    legend_below(figure, panel, columns=4)
    return figure


def _with_titan(results: Json) -> Json:
    """The sets with the paper's Ours+Titan as a system of its own: `pipeline-dense` where Titan was the encoder."""
    is_titan = str(results.get("used", {}).get("encoder")).startswith(TITAN)
    why = {"not_run": "use `MATS_BEDROCK=1 MATS_ENCODER=amazon.titan-embed-text-v2:0 python -m experiments run main`"}
    return {
        name: {
            **one,
            "systems": {**one["systems"], _TITAN: one["systems"].get("pipeline-dense", why) if is_titan else why},
        }
        for name, one in results["sets"].items()
    }


def _match_at_1(sets: Json, paper: Json, shown: Sequence[str]) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, one in sets.items():
        cells = (_match(one["systems"], system) for system in shown)
        rows.append((f"{name} ({one['documents']:,} / {one['queries']:,})", *cells))
        if name in paper["sets"]:
            rows.append(_paper_row(paper, name, shown))
    not_run = not_run_notes((system, value) for one in sets.values() for system, value in one["systems"].items())
    return Table(
        id="main-match-1",
        caption="Match@1 by set and system, % (capabilities / queries)",
        head=("set", *shown),
        rows=tuple(rows),
        notes=(*_differences(sets, paper), *not_run, *_missed_notes(sets)),
    )


def _best_first(ran: Json, systems: Sequence[str]) -> tuple[str, ...]:
    """The systems that ran in their order, but the one with the highest mean over the sets first: never clipped."""
    shares = {
        system: [one[system]["metrics"]["match@1"]["mean"] for one in ran.values() if system in one]
        for system in systems
    }
    means = {system: sum(each) / len(each) for system, each in shares.items() if each}
    best = max(means, key=means.__getitem__, default="")
    return tuple(sorted(means, key=lambda system: system != best))


def _paper_row(paper: Json, name: str, systems: Sequence[str]) -> tuple[str, ...]:
    row = paper["sets"][name]["row"]
    known = paper["main"]["rows"][row]
    cells = (percent(known["match@1"].get(paper["systems"].get(system, ""))) for system in systems)
    return (f"paper: {row} ({known['registry']:,} / {known['queries']:,})", *cells)


def _papers_own(sets: Json, paper: Json, not_run: Sequence[str]) -> tuple[Table, ...]:
    """The paper's numbers for the systems that were not run here."""
    missing = [system for system in not_run if system in paper["systems"]]
    rows = tuple(_paper_row(paper, name, missing) for name in sets if name in paper["sets"])
    if not missing or not rows:
        return ()
    caption = "The paper's Match@1 of the systems that were not run here, %"
    return (Table(id="main-not-run", caption=caption, head=("set", *missing), rows=rows),)


def _match(systems: Json, name: str) -> str:
    if (result := systems.get(name)) is None:
        return NONE
    fewer = [f" ({kind}, {result[kind]:,})" for kind in ("recorded", "sampled") if kind in result]
    return measure(result.get("metrics", result), "match@1") + "".join(fewer)


def _sources(sets: Json, ran: Json, paper: Json) -> Table:
    """The paper's comparison by source: the pipeline against a model that searches."""
    rows: list[tuple[str, ...]] = []
    for name, one in ran.items():
        of = [one.get(system, {}).get("sources", {}) for system in _PAIR]
        for source, counted in of[1].items():
            shares = (percent(each.get(source, {}).get("match@1")) for each in of)
            rows.append((name, source, number(counted["queries"]), *shares))
    for row, sources in paper["sources"]["rows"].items():
        for source, known in sources.items():
            shares = (percent(known[system]) for system in ("ours+titan", "search-and-pick"))
            rows.append((row, f"paper: {source}", number(known["queries"]), *shares))
    return Table(
        id="main-sources",
        caption="Match@1 by source of the queries, %",
        head=("set", "source", "queries", *_PAIR),
        rows=tuple(rows),
        labels=2,
        notes=(
            f"The paper ({paper['sources']['table']}) compares Ours+Titan and finds it ahead on 13 of 16 sources of "
            "tools and 12 of 16 of agents with at least 100 queries.",
            *not_run_notes((each, one["systems"].get(each)) for one in sets.values() for each in _PAIR),
        ),
    )


def _retrievers(sets: Json, ran: Json, paper: Json) -> Table:
    """A retriever alone, and under the reranker."""
    known = paper["tool_tuned"]
    rows: list[tuple[str, ...]] = []
    for name, one in ran.items():
        for alone, whole in (("lexical", "pipeline-bm25"), ("dense", "pipeline-dense")):
            if alone in one:
                shares = (measure(one[alone]["metrics"], name_of) for name_of in ("match@1", "recall@15"))
                rows.append((name, alone, *shares, _match(sets[name]["systems"], whole)))
    for row, retrievers in known["rows"].items():
        rows += [(row, f"paper: {each}", *map(percent, one.values())) for each, one in retrievers.items()]
    return Table(
        id="main-retrievers",
        caption="A retriever alone, and end to end with a reranker, %",
        head=("set", "retriever", "match@1", "recall@15", "match@1, end to end"),
        rows=tuple(rows),
        labels=2,
        notes=(
            f"The paper ({known['table']}) adds an encoder tuned for tools. Not run (ToolBench-IR, BGE-large, Titan "
            "V2): use `MATS_ENCODER=ENCODER python -m experiments run main`",
        ),
    )


def _others(ran: Json, paper: Json) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, one in ran.items():
        for system, result in one.items():
            rows.append((name, system, *(measure(result["metrics"], each) for each in _OTHERS)))
            if known := _of_paper(paper, name, system):
                rows.append((name, f"paper: {paper['systems'][system]}", *(measure(known, each) for each in _OTHERS)))
    return Table(
        id="main-others",
        caption="The other measures, %",
        head=("set", "system", *_OTHERS),
        rows=tuple(rows),
        labels=2,
        notes=(
            "The paper's columns for Match@15 and Recall@15 stand for different systems: retrievers alone have "
            "Match@15, whole pipelines Recall@15.",
        ),
    )


def _of_paper(paper: Json, name: str, system: str) -> dict[str, float]:
    known = paper["systems"].get(system, "")
    if name not in paper["sets"] or not known:
        return {}
    row = paper["sets"][name]["row"]
    tables = {**paper["ranking"]["rows"][row], **paper["at_15"]["rows"][row]}
    return {measure: systems[known] for measure, systems in tables.items() if known in systems}


def _differences(sets: Json, paper: Json) -> Iterator[str]:
    """The differences between our data and the paper's, one sentence per set."""
    differences = [paper["sets"][name]["differs"] for name in sets if name in paper["sets"]]
    if differences:
        yield (
            f"The paper's numbers ({paper['main']['table']}) come from other data: compare systems within a set, not "
            f"our numbers with the paper's. {' '.join(differences)}"
        )
        yield (
            "The paper contradicts itself on Full-Ctx: a footnote gives it 500 capabilities, but its 128,067 tokens "
            "per query are those of 480,000 characters of a whole registry. Ours reads the whole registry for at most "
            "500 seeded queries of a set."
        )
        yield (
            "The paper's BGE (five fields) stands under `dense`, Ours+BM25 and Ours+BGE under `pipeline-bm25` and "
            "`pipeline-dense`; ours use another encoder."
        )


def _missed_notes(sets: Json) -> Iterator[str]:
    """The definition of a miss: gold that is not registered, and failures."""
    gold = [f"{name} {one['unregistered_gold']:,}" for name, one in sets.items() if one.get("unregistered_gold")]
    if gold:
        yield f"Labels that are not in the registry and count as missed: {', '.join(gold)}."
    failures = [
        f"{system} on {name} {result['failed']:,}"
        for name, one in sets.items()
        for system, result in measured_only(one["systems"]).items()
        if result.get("failed")
    ]
    if failures:
        yield f"Queries that failed and count as missed: {', '.join(failures)}."


def finding(results: Json) -> str:
    gains = {}
    for name, one in results["sets"].items():
        systems = measured_only(one["systems"])
        if {OURS, PLAIN_BM25} <= systems.keys():
            ours, plain = (100 * systems[each]["metrics"]["match@1"]["mean"] for each in (OURS, PLAIN_BM25))
            gains[name] = (ours - plain, ours)
    if not gains:
        return ""
    ahead = sum(gain > 0 for gain, _ in gains.values())
    low, high = min(gains.values())[0], max(gains.values())[0]
    worst = min(gains, key=lambda name: gains[name][1])
    return (
        f"Accuracy: without an LLM, `{OURS}` (the first stage as shipped) puts a relevant capability first more often "
        f"than plain BM25 on {ahead} of {len(gains)} sets, by {low:+.1f} to {high:+.1f} points; hardest is `{worst}`, "
        f"with {gains[worst][1]:.1f} %."
    )


EXPERIMENTS = (Experiment(name="main", place=10, run=run, section=section, finding=finding),)
