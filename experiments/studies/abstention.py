"""Abstention: false rejects and false accepts at every threshold."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas

from experiments.report.cells import Figure, Section, Table, comma_list, percent
from experiments.report.style import BLUE, GREEN, VERMILION, legend_below, mark, panels
from experiments.studies.context import Experiment, ExperimentContext
from mats import bootstrap
from mats.evaluation.calibration.thresholds import THRESHOLDS, below, relevance_scores
from mats.evaluation.data.datasets import FOUR_KINDS
from mats.evaluation.results import Json

QUERY_CLASSES = {"bereft": "capability missing", "gibberish": "gibberish"}
"""Labels of the classes of queries that a results file has."""


def run(context: ExperimentContext) -> dict[str, Any]:
    """False rejects of in-scope queries; false accepts of queries without their gold, and of gibberish.

    Scores are those of a registry without an LLM, on the shipped scale.
    """
    encoder, names = context.models.encoder, list(FOUR_KINDS.values())
    index = context.bench(names[0]).discover.retrieve.index.name
    calibration = bootstrap.load_calibration(index, encoder.name if encoder else "none")
    scores = []
    for name in names:
        context.log(f"{name}: in scope, gold removed, gibberish")
        scores.append(relevance_scores(context.dataset(name), context.models.offline, encoder, calibration.scale))
    shares = below(scores)
    return {
        "sets": names,
        "thresholds": list(THRESHOLDS),
        "false_reject": shares["good"],
        "false_accept": {kind: [round(1 - s, 4) for s in shares[kind]] for kind in ("bereft", "gibberish")},
        "chosen": {"weak": calibration.thresholds.weak, "match": calibration.thresholds.match},
    }


def section(results: Json, paper: Json) -> Section:
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
        draw=lambda: _draw(results),
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


def _draw(results: Json) -> Canvas:
    figure, (panel,) = panels(1, 1, height=4.8)
    grid, accepted = results["thresholds"], results["false_accept"]
    curves = {"false rejects": results["false_reject"]}
    curves |= {f"false accepts: {QUERY_CLASSES[kind]}": shares for kind, shares in accepted.items()}
    for (label, shares), colour, shape, dash in zip(
        curves.items(), (VERMILION, BLUE, GREEN), ("s", "o", "^"), ("--", "-", "-."), strict=False
    ):
        panel.plot(
            grid, [100 * share for share in shares], color=colour, zorder=3, marker=shape, linestyle=dash, label=label,
            markevery=max(1, len(grid) // 20), clip_on=False,
        )  # fmt: skip
    for name, at in results["chosen"].items():
        mark(panel, f"{name} {at:.2f}", (at, 101), xytext=(3, 0))
    panel.set(xlabel="threshold of the best score", ylabel="queries, %", xlim=(min(grid), max(grid)), ylim=(0, 103))
    panel.grid(visible=True)
    legend_below(figure, panel, columns=3)
    return figure


def finding(results: Json) -> str:
    at, grid = results["chosen"].get("match"), results["thresholds"]
    if at is None or "bereft" not in results["false_accept"]:
        return ""
    curves = results["false_accept"]["bereft"], results["false_reject"]
    accepted, rejected = (float(np.interp(at, grid, curve)) for curve in curves)
    return (
        f"Verdicts: without an LLM, {100 * accepted:.0f} % of queries whose capability is missing are told "
        f"`match`, and {100 * rejected:.0f} % of the others are not: read the first few results before you use one."
    )


EXPERIMENTS = (Experiment(name="abstention", place=140, run=run, section=section, finding=finding),)
