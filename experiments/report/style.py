"""Style of the figures: one palette, markers and hatches besides colour, deterministic output."""

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

INK = "#1a1a1a"
BLUE, VERMILION = "#0072b2", "#d55e00"
"""Okabe & Ito, Color Universal Design (2008); distinguishable with any colour vision."""
WIDTH = 9.0  # Inches; 13 point type stays legible at half the size
_SHEET = Path(__file__).with_name("report.mplstyle")


def style_context() -> AbstractContextManager[None]:
    """The style of the report, independent of the user's configuration."""
    return matplotlib.style.context(["default", _SHEET])


def svg(figure: Figure) -> str:
    """The figure as SVG on white, type as paths; the same figure gives the same text."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def panels(columns: int, *, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure and its panels beside each other; height in inches."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False, **options)[0])


def against_size(panel: Axes, *labels: float) -> None:
    """Shares in per cent against sizes of registries, a logarithmic axis labelled at 1 and `labels` of each decade."""
    panel.set(xscale="log", ylim=(0, 103), xlabel="capabilities (log scale)")
    panel.xaxis.set_major_locator(LogLocator(base=10, subs=(1, *labels)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.grid(visible=True)


def legend_below(figure: Figure, panel: Axes, *, columns: int) -> None:
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, max(1, len(labels))))


PER_CENT = "queries, % (95 % interval)"  # The label of an axis
