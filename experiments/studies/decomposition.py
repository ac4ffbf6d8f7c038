"""The causes of misses: retrieval, or the order of its candidates."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from experiments.report.cells import INTERVALS, Figure, Section, Table, comma_list, number, percent
from experiments.report.results import measured_only, not_run_notes
from experiments.report.style import PER_CENT, bars, diamonds, legend_below, panels
from experiments.studies.context import OURS, Experiment, ExperimentContext, first_is_right, has_candidate, share_json
from experiments.variants import SYSTEMS
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers, SystemAnswer
from mats.evaluation.systems.score import dataset_json

_PICKERS = frozenset({"regex", "full-ctx", "search-and-pick", "trial-and-err"})
"""Systems without a first stage."""
_EXAMPLES = 5
_FACTORS = ("candidate", "of those, ranked first", "Match@1", "misses at retrieval")
_MISSES = {
    "retrieval_miss": "no relevant candidate",
    "picked_another": "another first",
    "several_gold": "several relevant",
}


def run(context: ExperimentContext) -> dict[str, Any]:
    """Both factors and the categories of misses; texts of real misses go to the examples."""
    sets = {}
    for name in context.sets:
        variants = [variant for variant in SYSTEMS if variant not in _PICKERS]
        systems = {
            variant: context.result(name, variant, partial(_factors, context, f"failures-{name}-{variant}"))
            for variant in variants
        }
        sets[name] = {**dataset_json(context.dataset(name)), "systems": systems}
    return {"k": context.models.settings.k, "sets": sets}


def _factors(context: ExperimentContext, examples: str, answers: Answers, dataset: Dataset) -> dict[str, Any]:
    hits, candidates = first_is_right(answers, dataset), has_candidate(answers, dataset)
    missed = [(query, answers[query.id]) for query, hit in zip(dataset.queries, hits, strict=True) if not hit]
    kinds = [category(query, answer) for query, answer in missed]
    context.write_examples(examples, _examples(dataset, missed))
    return {
        "candidates": share_json(candidates),
        "conditional": share_json(hits[candidates > 0]),
        "match@1": share_json(hits),
        "misses_at_retrieval": round(kinds.count("retrieval_miss") / len(kinds), 4) if kinds else 0.0,
        "categories": {kind: kinds.count(kind) for kind in ("retrieval_miss", "picked_another", "several_gold")},
    }


def category(query: JudgedQuery, answer: SystemAnswer) -> str:
    """The category of a miss, of those in the paper that labels can tell.

    `retrieval_miss`: no relevant candidate. `several_gold`: the query needs several capabilities, and some of them are
    candidates. `picked_another`: the relevant capability is a candidate, and another one is first.
    """
    if not query.relevant.intersection(answer.retrieved):
        return "retrieval_miss"
    return "several_gold" if len(query.relevant) > 1 else "picked_another"


def _examples(dataset: Dataset, missed: Iterable[tuple[JudgedQuery, SystemAnswer]]) -> list[dict[str, Any]]:
    """A few misses of each category, with query, relevant capabilities and first result."""
    described = {registration.id: registration.description for registration in dataset.registrations}
    examples: dict[str, list[dict[str, Any]]] = {}
    for query, answer in missed:
        kind = category(query, answer)
        row = {
            "category": kind,
            "query": query.text,
            "right": {id: described.get(id) for id in sorted(query.relevant)},
            "first": {id: described.get(id) for id in answer.ranked[:1]},
            "rank": next((rank for rank, id in enumerate(answer.ranked, start=1) if id in query.relevant), None),
        }
        examples.setdefault(kind, []).append(row)
    return [row for rows in examples.values() for row in rows[:_EXAMPLES]]


def section(results: Json, paper: Json) -> Section:
    sets = results["sets"]
    shares = ("candidates", "conditional", "match@1", "misses_at_retrieval")
    rows = tuple(
        (
            name,
            system,
            *(percent(result[share]) for share in shares),
            *(number(result["categories"].get(kind)) for kind in _MISSES),
        )
        for name, one in sets.items()
        for system, result in measured_only(one["systems"]).items()
    )
    known = paper["decomposition"]["misses_at_retrieval"].items()
    losses = comma_list(f"{100 * share:.0f} % on {row}" for row, share in known)
    low, high = paper["scale"]["conditional"]
    table = Table(
        id="decomposition-factors",
        caption="A relevant candidate × first if there is one = Match@1, %; and the causes of misses",
        head=("set", "system", *_FACTORS, *_MISSES.values()),
        rows=rows,
        labels=2,
        notes=(
            f"The paper loses {losses} of its misses at retrieval; where it found a relevant candidate, its reranker "
            f"ranks one first in {100 * low:.0f} to {100 * high:.0f} % of queries.",
            *not_run_notes((system, value) for one in sets.values() for system, value in one["systems"].items()),
        ),
    )
    figure = Figure(
        id="decomposition",
        caption="Share of queries with a relevant candidate, and of those where it is first, with 95 % intervals.",
        alt=f"Paired bars for every system on {comma_list(sets)}: share of queries with a relevant candidate, and "
        "share of those where it is first.",
        draw=lambda: _draw_factors(sets),
    )
    return Section(
        id="decomposition",
        title="Causes of misses",
        summary=f"Recall of the first stage at k = {number(results['k'])}, times the accuracy of the order of its "
        f"candidates. {INTERVALS}",
        tables=(table,),
        figures=(figure,) if rows else (),
    )


def _draw_factors(sets: Json) -> Canvas:
    """Two bars per system and set: queries with a relevant candidate, and those of them where it is first."""
    shown = {name: systems for name, one in sets.items() if (systems := measured_only(one["systems"]))}
    most = max(len(systems) for systems in shown.values())
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    figure, grid = panels(rows, columns, height=1.1 + rows * (0.7 + 0.44 * most), sharex=True)
    for panel, (name, systems) in zip(grid, shown.items(), strict=False):
        _pair(panel, systems)
        panel.set_title(f"{name} ({sets[name]['queries']:,} queries)", loc="left")
    for panel in grid[len(shown) :]:
        panel.set_visible(False)
    for panel in grid[max(0, len(shown) - columns) : len(shown)]:
        panel.set_xlabel(PER_CENT)
        panel.tick_params(labelbottom=True)
    legend_below(figure, grid[0], columns=3)
    return figure


def _pair(panel: Axes, systems: Json) -> None:
    bars(panel, 0, "relevant candidate", [one["candidates"] for one in systems.values()])
    bars(panel, 1, "of those, ranked first", [one["conditional"] for one in systems.values()])
    at = range(len(systems))
    diamonds(panel, [100 * one["match@1"]["mean"] for one in systems.values()], at, label="both: Match@1")
    panel.set_yticks(at, list(systems))
    panel.invert_yaxis()
    panel.set_xlim(0, 103)
    panel.grid(visible=True, axis="x")


def finding(results: Json) -> str:
    shares = {
        name: one["systems"][OURS]["misses_at_retrieval"]
        for name, one in results["sets"].items()
        if OURS in measured_only(one["systems"])
    }
    known = {name: share["mean"] if isinstance(share, Mapping) else share for name, share in shares.items() if share}
    if not known:
        return ""
    least, most = min(known, key=lambda each: known[each]), max(known, key=lambda each: known[each])
    return (
        f"Causes: of what `{OURS}` does not rank first, {100 * known[least]:.0f} % (`{least}`) to "
        f"{100 * known[most]:.0f} % (`{most}`) is not among its candidates; the rest is a matter of their order, "
        "which a reranker can still change."
    )


EXPERIMENTS = (Experiment(name="decomposition", place=30, run=run, section=section, finding=finding),)
