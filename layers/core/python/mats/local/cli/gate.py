"""`mats gate`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mats.local.cli.console import Exit, complain, err, exit_codes, out
from mats.local.cli.progress import bar
from mats.settings import Settings


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(gate)


def gate(
    context: typer.Context,
    baseline: Annotated[Path, typer.Option(help="File with what was reached before; --update makes it.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder of judged data sets, for baselines of more than the examples.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Measure, and write the baseline instead of holding anything against it.")
    ] = False,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME", help="With --update: a set to measure; `examples` by default."),
    ] = None,
) -> None:
    """Fail if retrieval has become worse: if any measure is below the interval that the baseline has for it.

    A baseline holds what one or more sets reached. The set `examples` has the golden queries: those in examples/,
    judged over the sample registry. Judged queries of your own make a baseline of your own registry.
    """
    from mats.evaluation.gate import dataset_of, drops, measure, read_baseline  # noqa: PLC0415 - scipy and friends
    from mats.evaluation.systems.models import Models  # noqa: PLC0415

    settings: Settings = context.obj
    models = Models(settings)
    with exit_codes():
        before = {} if update else read_baseline(baseline)
        now: dict[str, Any] = {}
        fallen = []
        for name in (sets or ["examples"]) if update else before:
            dataset = dataset_of(name, data)
            with bar(f"Indexing {name}", len(dataset.registrations)) as indexed, bar("Asking", None) as asked:
                now[name] = measure(dataset, models, indexed=indexed, asked=asked)
            reached = ", ".join(f"{measure} {100 * m['mean']:.1f}" for measure, m in now[name]["metrics"].items())
            out.print(f"{name}: {reached}")
            fallen += [] if update else list(drops(name, before[name], now[name]))
    if update:
        baseline.write_text(json.dumps({"sets": now}, indent=1) + "\n", encoding="utf-8")
        err.print(f"kept in {baseline}", style="dim", soft_wrap=True)
    for drop in fallen:
        complain(str(drop))
    if fallen:
        raise typer.Exit(Exit.REFUSED)
