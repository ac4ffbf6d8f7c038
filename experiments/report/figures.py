"""The figures, made from results; the caller saves them."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from experiments.report.results import measured_only, not_run_reason
from experiments.report.style import (
    BLUE,
    COLOURS,
    GREEN,
    INK,
    MARKERS,
    VERMILION,
    bars,
    diamonds,
    legend_below,
    look_of,
    panels,
)
from mats.evaluation.results import Json

_FACTORS_OF = ("pipeline-bm25", "pipeline-hybrid", "hybrid", "lexical", "bm25")
"""The sweep shows the factors of the first of these that was measured; the paper shows its pipeline over BM25."""
_NO_TIME = 0.01
"""Milliseconds, the precision of results; a logarithmic axis has no zero."""
QUERY_CLASSES = {"bereft": "capability missing", "gibberish": "gibberish"}
"""Labels of the classes of queries that a results file has."""
_PER_CENT = "queries, % (95 % interval)"


def sweep(results: Json) -> Figure:
    """Match@1 against registry size, one line per system; beside it the two factors of one system."""
    systems = measured_only(results["systems"])
    figure, (left, right) = panels(1, 2, height=5.6 + 0.3 * (len(systems) // 4), sharey=True, width_ratios=(3, 2))
    band = max(0.05, min(0.15, 0.5 / len(systems)))
    for name, look in look_of(list(systems)).items():
        _line(left, systems[name], "match@1", band, label=name, markersize=6, **look)
    chosen = next((name for name in _FACTORS_OF if name in systems), next(iter(systems)))
    _line(right, systems[chosen], "candidates", 0.15, label="relevant candidate", color=BLUE, marker="o", linestyle="-")
    _line(
        right,
        systems[chosen],
        "conditional",
        0.15,
        label="of those, ranked first",
        color=VERMILION,
        marker="s",
        linestyle="--",
    )
    if size := results["crossover"].get("size"):
        _mark(left, f"crossover {size:,}", (size, 3), xytext=(-5, 0), rotation=90, ha="right", va="bottom")
    left.set(title="Match@1", ylabel=_PER_CENT)
    right.set(title=f"Factors of {chosen}")
    right.legend(loc="lower left")
    for panel in (left, right):
        _sizes(panel, results["sizes"])
    legend_below(figure, left, columns=5 if len(systems) <= 5 else 4)
    return figure


def _line(panel: Axes, points: Sequence[Json], name: str, band: float, **look: Any) -> None:
    """A line with its interval as a band; sizes without an estimate are left out."""
    sizes = [point["size"] for point in points if point.get(name)]
    mean, low, high = ([100 * p[name][key] for p in points if p.get(name)] for key in ("mean", "low", "high"))
    if sizes:
        panel.plot(sizes, mean, **look)
        panel.fill_between(sizes, low, high, color=look["color"], alpha=band, linewidth=0)


def _sizes(panel: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis with unabbreviated sizes."""
    panel.set(xscale="log", ylim=(0, 103), xlabel="capabilities (log scale)")
    panel.set_xlim(min(sizes) * 0.85, max(sizes) * 1.18)
    panel.xaxis.set_major_locator(LogLocator(base=10))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.grid(visible=True)


def _mark(panel: Axes, text: str, at: tuple[float, float], **options: Any) -> None:
    """A dotted vertical line with its name beside it."""
    panel.axvline(at[0], color=INK, linewidth=1.2, linestyle=(0, (1, 2)))
    panel.annotate(text, at, textcoords="offset points", fontsize=11, **options)


def factors(sets: Json) -> Figure:
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
        panel.set_xlabel(_PER_CENT)
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


def sparsity(levels: Json, paper: Json) -> Figure:
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


def by_source(sources: Json) -> Figure:
    order = sorted(sources, key=lambda each: (-sources[each]["hybrid"]["match@15"]["mean"], each))
    figure, grid = panels(1, 2, height=1.8 + 0.46 * len(order), sharey=True)
    for panel, name in zip(grid, ("match@1", "match@15"), strict=True):
        for side, system in enumerate(("bm25", "hybrid")):
            bars(panel, side, system, [sources[each][system][name] for each in order])
        panel.set(title=name.capitalize(), xlabel=_PER_CENT, xlim=(0, 103), ylim=(len(order) - 0.4, -0.6))
        panel.grid(visible=True, axis="x")
    grid[0].set_yticks(range(len(order)), [f"{each} (n = {sources[each]['queries']:,})" for each in order])
    legend_below(figure, grid[0], columns=2)
    return figure


def stages_of(systems: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The stages of all systems, the total last."""
    names = dict.fromkeys(stage for times in systems.values() for stage in times)
    return sorted(names, key=lambda stage: stage == "total")


def latency(systems: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Figure:
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


def thresholds(results: Json) -> Figure:
    figure, (panel,) = panels(1, 1, height=4.8)
    grid, accepted = results["thresholds"], results["false_accept"]
    curves = {"false rejects": results["false_reject"]}
    curves |= {f"false accepts: {QUERY_CLASSES[kind]}": shares for kind, shares in accepted.items()}
    for (label, shares), colour, mark, dash in zip(
        curves.items(), (VERMILION, BLUE, GREEN), ("s", "o", "^"), ("--", "-", "-."), strict=False
    ):
        panel.plot(
            grid, [100 * share for share in shares], color=colour, zorder=3, marker=mark, linestyle=dash, label=label,
            markevery=max(1, len(grid) // 20), clip_on=False,
        )  # fmt: skip
    for name, at in results["chosen"].items():
        _mark(panel, f"{name} {at:.2f}", (at, 101), xytext=(3, 0))
    panel.set(xlabel="threshold of the best score", ylabel="queries, %", xlim=(min(grid), max(grid)), ylim=(0, 103))
    panel.grid(visible=True)
    legend_below(figure, panel, columns=3)
    return figure
