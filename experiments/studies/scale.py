"""Accuracy against the size of the registry, from ten capabilities to all of them."""

from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.experiment import Experiment, arms
from experiments.measures import factors
from experiments.panels import by_size
from experiments.report.cells import FigureForm, Sets, TableForm, share
from experiments.report.results import measured_only, not_run_reason
from experiments.report.style import BLUE, INK, PER_CENT, VERMILION, against_size, legend_below, panels
from experiments.studies.main import OURS, PLAIN_BM25
from experiments.variants import SYSTEMS
from mats.evaluation.results import Json

SIZES = (10, 25, 50, 100, 250, 500, 1_000, 2_000, 3_000, 4_000, 5_500)
"""And the whole registry: twelve sizes, as in the paper, which names only some of them."""
QUERIES = 100
SINGLE, TWO_STAGE = "full-ctx", "pipeline-bm25"
_FACTORS_OF = (TWO_STAGE, "pipeline-hybrid", OURS)
"""The figure shows the factors of the first of these that was measured; the paper's, those of its Ours+BM25."""


def crossover(found: Sets) -> int | str | None:
    """The smallest size from which on two stages stay ahead of one, if there is one; else why it is not known."""
    pairs = [
        (one["documents"], *(one["systems"].get(name, {}) for name in (SINGLE, TWO_STAGE))) for one in found.values()
    ]
    if not (both := [(n, one, two) for n, one, two in pairs if "match@1" in one and "match@1" in two]):
        return next((why for pair in pairs for cell in pair[1:] if (why := not_run_reason(cell))), "no size")
    behind = [n for n, one, two in both if two["match@1"]["mean"] <= one["match@1"]["mean"]]
    return min((n for n, *_ in both if n > max(behind, default=0)), default=None)


def _crossover_note(found: Sets, paper: Json) -> Iterator[str]:
    size = crossover(found)
    if isinstance(size, str):
        yield f"Crossover not measured: {size}"
    elif size is None:
        yield f"{TWO_STAGE} never stays ahead of {SINGLE}."
    else:
        yield f"{TWO_STAGE} is ahead of {SINGLE} from {size:,} capabilities on."


def _sweep(found: Sets, paper: Json) -> Figure:
    """Match@1 against registry size, one line per system; beside it the two factors of one system."""
    names = list(dict.fromkeys(name for one in found.values() for name in measured_only(one["systems"])))
    figure, (left, right) = panels(2, height=5.6 + 0.3 * (len(names) // 4), sharey=True, width_ratios=(3, 2))
    for name in names:
        _line(left, found, name, "match@1", max(0.05, min(0.15, 0.5 / len(names))), label=name, markersize=6)
    chosen = next((name for name in _FACTORS_OF if name in names), names[0])
    _line(right, found, chosen, "candidates", 0.15, label="relevant candidate", color=BLUE, marker="o")
    _line(right, found, chosen, "conditional", 0.15, label="of those, first", color=VERMILION, marker="s", ls="--")
    if isinstance(size := crossover(found), int):
        left.axvline(size, color=INK, linewidth=1.2, linestyle=(0, (1, 2)))
    left.set(title="Match@1", ylabel=PER_CENT)
    right.set(title=f"Factors of {chosen}")
    right.legend(loc="lower left")
    for panel in (left, right):
        against_size(panel)
    legend_below(figure, left, columns=4)
    return figure


def _line(panel: Axes, found: Sets, system: str, name: str, band: float, **look: Any) -> None:
    """A line with its interval as a band; sizes without an estimate are left out."""
    points = [(one["documents"], one["systems"][system].get(name)) for one in found.values()]
    sizes = [size for size, value in points if value]
    mean, low, high = ([100 * value[key] for _, value in points if value] for key in ("mean", "low", "high"))
    (line,) = panel.plot(sizes, mean, **look)
    panel.fill_between(sizes, low, high, color=line.get_color(), alpha=band, linewidth=0)


def _finding(found: Sets) -> str:
    ends = [list(found.values())[place] for place in (0, -1)]
    if any({OURS, PLAIN_BM25} - measured_only(one["systems"]).keys() for one in ends):
        return ""
    falls = [
        " to ".join(f"{100 * one['systems'][name]['match@1']['mean']:.1f}" for one in ends)
        for name in (OURS, PLAIN_BM25)
    ]
    return (
        f"Growth: from {ends[0]['documents']:,} to {ends[1]['documents']:,} capabilities, Match@1 of `{OURS}` falls "
        f"from {falls[0]} %, of plain BM25 from {falls[1]} %."
    )


EXPERIMENT = Experiment(
    name="scale",
    place=20,
    title="Accuracy against the size of the registry",
    about=f"{QUERIES} seeded queries; what is relevant to them is in every registry that can hold it, and seeded "
    "distractors fill the rest. In per cent, with bootstrap 95 % intervals.",
    panels=lambda context: by_size(context.dataset(context.large_set), SIZES, QUERIES),
    arms=arms(*SYSTEMS),
    measures=(factors,),
    tables=(
        TableForm(
            id="scale-match-1", caption="Match@1 by size, %", columns={"match@1": share("match@1")}, wide=True,
            systems=(OURS, PLAIN_BM25, *(name for name in SYSTEMS if name not in (OURS, PLAIN_BM25))),
            paper="fig:scaling-within", notes=_crossover_note,
        ),
        TableForm(
            id="scale-factors", caption="Both factors by size, %", systems=_FACTORS_OF, paper="fig:scaling-within",
            columns={"candidate": share("candidates"), "of those, first": share("conditional")},
        ),
    ),
    figures=(
        FigureForm(
            id="scale", draw=_sweep, caption="Accuracy as the registry grows; bands are 95 % intervals.",
            alt="Match@1 against registry size for each system, and beside it the share of queries with a relevant "
            "candidate and the share of those where it is first.",
        ),
    ),
    finding=_finding,
)  # fmt: skip
