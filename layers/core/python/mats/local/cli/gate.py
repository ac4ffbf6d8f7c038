"""`mats gate`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mats.local.cli.output import Exit, complain, err, exit_codes, out
from mats.local.cli.progress import bar
from mats.settings import Settings


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(gate)


def gate(
    context: typer.Context,
    baseline: Annotated[Path, typer.Option(help="File of the baseline; --update writes it.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder of judged data sets, for baselines of more than the examples.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Measure, and write the baseline instead of comparing with it.")
    ] = False,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME", help="With --update: a set to measure; default: `examples`."),
    ] = None,
) -> None:
    """Fail if a measure of retrieval is below its interval in the baseline.

    A baseline holds the measures of one or more sets. The set `examples` is the sample registry with its golden
    queries. Judged queries of your own make a baseline of your own registry.
    """
    from mats.evaluation.gate import dataset_of, drops, measure, read_baseline  # noqa: PLC0415 - scipy and friends
    from mats.evaluation.systems.models import Models  # noqa: PLC0415

    settings: Settings = context.obj
    models = Models(settings)
    with exit_codes():
        before = {} if update else read_baseline(baseline)
        now: dict[str, Any] = {}
        dropped = []
        for name in (sets or ["examples"]) if update else before:
            dataset = dataset_of(name, data)
            with bar(f"Indexing {name}", len(dataset.registrations)) as indexed, bar("Asking", None) as asked:
                now[name] = measure(dataset, models, indexed=indexed, asked=asked)
            summary = ", ".join(f"{measure} {100 * m['mean']:.1f}" for measure, m in now[name]["metrics"].items())
            out.print(f"{name}: {summary}")
            dropped += [] if update else list(drops(name, before[name], now[name]))
    if update:
        baseline.write_text(json.dumps({"sets": now}, indent=1) + "\n", encoding="utf-8")
        err.print(f"baseline written to {baseline}", style="dim", soft_wrap=True)
    for drop in dropped:
        complain(str(drop))
    if dropped:
        raise typer.Exit(Exit.REFUSED)
