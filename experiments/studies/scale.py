"""Accuracy against the size of the registry, from ten capabilities to all of them.

A fixed slice of queries is asked of growing registries that hold their gold. Where a registry is too small for all of
that gold, the queries are split over several registries of that size, each with the gold of its queries.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from experiments.report.cells import INTERVALS, Figure, Section, Table, number, percent
from experiments.report.results import measured_only, not_run_notes, not_run_reason
from experiments.report.style import BLUE, INK, PER_CENT, VERMILION, legend_below, look_of, panels
from experiments.studies.context import OURS, PLAIN_BM25, Experiment, ExperimentContext, first_is_right, has_candidate
from experiments.variants import SYSTEMS
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import SEED, Values, estimate
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers
from mats.evaluation.systems.score import estimate_json

QUERIES = 100
SIZES = (10, 25, 50, 100, 250, 500, 1_000, 2_000, 3_000, 4_000, 5_500)
"""And the whole registry: twelve sizes, as in the paper, which names only some of them."""
SINGLE, TWO_STAGE = "full-ctx", "pipeline-bm25"
_FACTORS_OF = ("pipeline-bm25", "pipeline-hybrid", "hybrid", "lexical", "bm25")
"""The _sweep shows the factors of the first of these that was measured; the paper shows its pipeline over BM25."""


def run(context: ExperimentContext) -> dict[str, Any]:
    dataset = context.dataset(context.large_set)
    asked = query_slice(dataset)
    gold = {id for query in asked for id in query.relevant}
    total = len(dataset.registrations)
    sizes = [*(size for size in SIZES if size < total), total]
    lacking = {name: context.lacking(variant.needs) for name, variant in SYSTEMS.items()}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name, why in lacking.items() if not why}
    for size in sizes:
        context.log(f"{dataset.name}: {size:,} capabilities")
        parts = list(registries(dataset, asked, size))
        for name, point in _measure(context, parts, list(rows)).items():
            rows[name].append({"size": size, **point})
    systems = {name: rows.get(name) or {"not_run": why} for name, why in lacking.items()}
    return {
        "dataset": dataset.name,
        "queries": len(asked),
        "gold": len(gold),
        "sizes": sizes,
        "systems": systems,
        "crossover": _find_crossover(systems, lacking),
    }


def query_slice(dataset: Dataset) -> list[JudgedQuery]:
    """A seeded slice of the queries whose gold is all registered."""
    registered = {registration.id for registration in dataset.registrations}
    queries = [query for query in dataset.queries if query.relevant <= registered]
    return sorted(random.Random(SEED).sample(queries, min(QUERIES, len(queries))), key=lambda query: query.id)


def registries(dataset: Dataset, queries: Sequence[JudgedQuery], size: int) -> Iterator[Dataset]:
    """The fewest registries of a size that hold the gold of all queries, each query in one of them."""
    by_id = {registration.id: registration for registration in dataset.registrations}
    gold = {id for query in queries for id in query.relevant}
    others = [id for id in by_id if id not in gold]
    random.Random(SEED).shuffle(others)  # one order, so that a larger registry holds every smaller one's distractors
    for part in _split(queries, size):
        gold_ids = sorted({id for query in part for id in query.relevant})
        ids = [*gold_ids, *others[: size - len(gold_ids)]]
        if len(ids) < size:  # the whole registry: the gold of the other parts fills it up
            ids += sorted(gold.difference(gold_ids))[: size - len(ids)]
        yield replace(dataset, registrations=[by_id[id] for id in ids], queries=part)


def _split(queries: Sequence[JudgedQuery], size: int) -> Iterator[list[JudgedQuery]]:
    """Queries in order, split where their gold exceeds a size; a query whose own gold exceeds it is left out."""
    part: list[JudgedQuery] = []
    gold: set[Id] = set()
    for query in queries:
        if len(query.relevant) > size:
            continue
        if len(gold | query.relevant) > size:
            yield part
            part, gold = [], set()
        part.append(query)
        gold |= query.relevant
    yield part


def _measure(
    context: ExperimentContext, parts: Sequence[Dataset], variants: Sequence[str]
) -> dict[str, dict[str, Any]]:
    answers: dict[str, list[tuple[Answers, Dataset]]] = {name: [] for name in variants}
    for part in parts:
        writer = context.models.writer if context.enriched and not context.lacking({"llm"}) else None
        with context.bench_of(part) as raw, context.bench_of(part, writer=writer) as enriched:
            for name in variants:
                bench = enriched if writer and SYSTEMS[name].has_llm else raw
                answers[name].append((SYSTEMS[name].answers(bench), part))
    return {name: _point(each) for name, each in answers.items()}


def _point(answers: Sequence[tuple[Answers, Dataset]]) -> dict[str, Any]:
    """The measures at one size; None if every query failed, as where the registry exceeds a model's window."""
    if all(answer.failed for given, _ in answers for answer in given.values()):
        return {**dict.fromkeys(("match@1", "candidates", "conditional")), "queries": sum(len(g) for g, _ in answers)}
    hits = np.concatenate([first_is_right(given, part) for given, part in answers])
    candidates = np.concatenate([has_candidate(given, part) for given, part in answers])
    return {
        "match@1": _share(hits),
        "candidates": _share(candidates),
        "conditional": _share(hits[candidates > 0]),
        "queries": len(hits),
    }


def _share(values: Values) -> dict[str, float] | None:
    """The mean of per-query values with its interval; None without values."""
    return estimate_json(estimate(values)) if len(values) else None


def _find_crossover(systems: Mapping[str, Any], lacking: Mapping[str, str]) -> dict[str, Any]:
    """The smallest size from which on two stages stay ahead of one, if there is one."""
    if why := lacking[SINGLE] or lacking[TWO_STAGE]:
        return {"not_run": why}
    ahead = [
        (two["size"], two["match@1"]["mean"] > one["match@1"]["mean"])
        for one, two in zip(systems[SINGLE], systems[TWO_STAGE], strict=True)
        if one["match@1"] and two["match@1"]
    ]
    behind = [size for size, is_ahead in ahead if not is_ahead]
    after = [size for size, is_ahead in ahead if is_ahead and size > max(behind, default=0)]
    return {"single": SINGLE, "two_stage": TWO_STAGE, "size": min(after, default=None)}


def section(results: Json, paper: Json) -> Section:
    systems = measured_only(results["systems"])
    figure = Figure(
        id="scale",
        caption=f"Accuracy as the registry grows, {results['queries']:,} queries; bands are 95 % intervals.",
        alt=f"Match@1 against registry size for {', '.join(systems)}, and beside it the share of queries with a "
        "relevant candidate and the share of those where it is first.",
        draw=lambda: _sweep(results),
    )
    return Section(
        id="scale",
        title="Accuracy against the size of the registry",
        summary=f"{results['queries']:,} queries of `{results['dataset']}`; their {results['gold']:,} relevant "
        f"capabilities are in every registry that can hold them; seeded distractors fill the rest. {INTERVALS}",
        tables=(_by_size(results, paper["scale"]),),
        figures=(figure,) if systems else (),
    )


def _by_size(results: Json, known: Json) -> Table:
    sizes, (first, last) = results["sizes"], known["sizes"]
    rows: list[tuple[str, ...]] = []
    for system, points in measured_only(results["systems"]).items():
        at = {point["size"]: point["match@1"] for point in points}
        rows.append((system, *(percent(at.get(size)) for size in sizes)))
    for system, (smallest, largest) in known["systems"].items():
        ends = {first: smallest, last: largest}
        rows.append((f"paper: {system}", *(percent(ends.get(size)) for size in [*sizes[:-1], last])))
    return Table(
        id="scale-match-1",
        caption="Match@1 by size of the registry, %",
        head=("system", *map(number, sizes)),
        rows=tuple(rows),
        notes=(
            f"The paper ({known['table']}) names the ends of its sweep, {first:,} and "
            f"{last:,} tools of its own data; the latter stands under our largest size. It contradicts itself: the "
            f"crossover is at {known['crossover']}, but its appendix has the pipeline 7 to 17 points ahead from 50 on.",
            _crossover(results["crossover"], known["crossover"]),
            *not_run_notes(results["systems"].items()),
        ),
    )


def _crossover(found: Json, of_paper: int) -> str:
    if why := not_run_reason(found):
        return f"Crossover not measured: {why}"
    single, two, size = found["single"], found["two_stage"], found["size"]
    ahead = f"never stays ahead of {single}" if size is None else f"is ahead of {single} from {size:,} capabilities on"
    return f"{two} {ahead}; the paper's crossover is about {of_paper}."


def _sweep(results: Json) -> Canvas:
    """Match@1 against registry size, one line per system; beside it the two factors of one system."""
    systems = measured_only(results["systems"])
    figure, (left, right) = panels(2, height=5.6 + 0.3 * (len(systems) // 4), sharey=True, width_ratios=(3, 2))
    band = max(0.05, min(0.15, 0.5 / len(systems)))
    for name, look in look_of(list(systems)).items():
        _line(left, systems[name], "match@1", band, label=name, markersize=6, **look)
    chosen = next((name for name in _FACTORS_OF if name in systems), next(iter(systems)))
    points = systems[chosen]
    _line(right, points, "candidates", 0.15, label="relevant candidate", color=BLUE, marker="o")
    _line(right, points, "conditional", 0.15, label="of those, ranked first", color=VERMILION, marker="s", ls="--")
    if size := results["crossover"].get("size"):
        left.axvline(size, color=INK, linewidth=1.2, linestyle=(0, (1, 2)))
        place: dict[str, Any] = {"xytext": (-5, 0), "rotation": 90, "ha": "right", "va": "bottom"}
        left.annotate(f"crossover {size:,}", (size, 3), textcoords="offset points", fontsize=11, **place)
    left.set(title="Match@1", ylabel=PER_CENT)
    right.set(title=f"Factors of {chosen}")
    right.legend(loc="lower left")
    for panel in (left, right):
        panel.set(xscale="log", ylim=(0, 103), xlabel="capabilities (log scale)")
        panel.set_xlim(min(results["sizes"]) * 0.85, max(results["sizes"]) * 1.18)
        panel.xaxis.set_major_locator(LogLocator(base=10))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))  # unabbreviated
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(visible=True)
    legend_below(figure, left, columns=5 if len(systems) <= 5 else 4)
    return figure


def _line(panel: Axes, points: Sequence[Json], name: str, band: float, **look: Any) -> None:
    """A line with its interval as a band; sizes without an estimate are left out."""
    sizes = [point["size"] for point in points if point.get(name)]
    mean, low, high = ([100 * p[name][key] for p in points if p.get(name)] for key in ("mean", "low", "high"))
    if sizes:
        panel.plot(sizes, mean, **look)
        panel.fill_between(sizes, low, high, color=look["color"], alpha=band, linewidth=0)


def finding(results: Json) -> str:
    systems = measured_only(results["systems"])
    ends = {name: (systems[name][0], systems[name][-1]) for name in (OURS, PLAIN_BM25) if systems.get(name)}
    if OURS not in ends:
        return ""
    fall = {
        name: " to ".join(f"{100 * point['match@1']['mean']:.1f}" for point in points) for name, points in ends.items()
    }
    first, last = ends[OURS]
    plain = f", of plain BM25 from {fall[PLAIN_BM25]} %" if PLAIN_BM25 in fall else ""
    return (
        f"Growth: from {number(first['size'])} to {number(last['size'])} capabilities, Match@1 of `{OURS}` falls from "
        f"{fall[OURS]} %{plain}."
    )


EXPERIMENTS = (Experiment(name="scale", place=20, run=run, section=section, finding=finding),)
