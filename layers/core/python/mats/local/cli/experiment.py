"""`mats experiment`."""

import time
from pathlib import Path
from typing import Annotated

import typer

from mats.local.cli.output import err, exit_codes
from mats.local.cli.spending import confirm_cost
from mats.settings import Settings


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(experiment)


def experiment(
    context: typer.Context,
    data: Annotated[Path, typer.Option(help="Folder of judged data sets.", exists=True, file_okay=False)],
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Experiments; default: all.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME", help="Only this data set; may be given several times.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the estimated cost; without it, no model is called.")
    ] = False,
    examples: Annotated[
        Path, typer.Option(help="Folder for real texts of misses, which are not part of the results.")
    ] = Path("build/examples"),
) -> None:
    """Run the paper's experiments over judged data sets and write their results to evaluation/results.

    Experiments: main, scale, decomposition, enrichment, signals, first-stage, field-weights, efficiency, kinds and
    abstention. A system whose model is not configured is reported as not run. `mats report` renders tables and
    figures.
    """
    from mats.evaluation.data.datasets import SETS  # noqa: PLC0415
    from mats.evaluation.experiments.catalogue import EXPERIMENTS, estimate_costs  # noqa: PLC0415 - scipy and friends, when asked
    from mats.evaluation.experiments.context import ExperimentContext  # noqa: PLC0415
    from mats.evaluation.reporting.results import write_results  # noqa: PLC0415
    from mats.evaluation.systems.models import Models  # noqa: PLC0415

    settings: Settings = context.obj
    if unknown := set(names or ()) - EXPERIMENTS.keys():
        raise typer.BadParameter(f"unknown experiment {', '.join(sorted(unknown))}: use {', '.join(EXPERIMENTS)}")
    with (
        exit_codes(),
        ExperimentContext(data=data, models=Models(settings), sets=tuple(sets or SETS), examples=examples) as shared,
    ):
        chosen = names or list(EXPERIMENTS)
        confirm_cost(estimate_costs(shared, chosen), yes=yes)
        for name in chosen:
            began = time.monotonic()
            results = EXPERIMENTS[name].run(shared)
            seconds = round(time.monotonic() - began, 1)
            path = write_results(f"experiment-{name}", {**results, "used": shared.to_json(), "seconds": seconds})
            err.print(f"{name}: results written to {path}", style="dim", soft_wrap=True)
