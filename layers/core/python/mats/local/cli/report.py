"""`mats report`."""

from pathlib import Path
from typing import Annotated

import typer

from mats.local.cli.output import err, exit_codes, out, plain


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(report)


def report(
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the report.", file_okay=False)] = Path(
        "evaluation/results/report"
    ),
    results: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the results.", show_default="evaluation/results", file_okay=False),
    ] = None,
) -> None:
    """Render the results of experiments as Markdown, figures and one HTML page, without measuring.

    Writes report.md, index.html, report.json (for the console), and every figure as SVG and PNG. Lists the experiments
    that have no results.
    """
    from mats.evaluation.reporting.render import build_report, write_report  # noqa: PLC0415 - matplotlib, for this command only
    from mats.evaluation.reporting.results import RESULTS  # noqa: PLC0415

    with exit_codes():
        rendered = build_report(results or RESULTS)
        paths = write_report(rendered, to)
    for line in rendered.intro[1:]:
        err.print(plain(line), style="dim", soft_wrap=True)
    out.print(plain(f"{paths[1]} ({len(rendered.sections)} sections, {len(rendered.figures)} figures)"), soft_wrap=True)
