"""The commands and their common options."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mats import __version__
from mats.local.cli import (
    dataset,
    enrich,
    evaluate,
    experiment,
    gate,
    import_,
    mcp,
    operate,
    preview,
    registry,
    replay,
    report,
    search,
    serve,
    views,
)
from mats.local.cli.output import exit_codes
from mats.settings import Settings

app = typer.Typer(
    name="mats",
    help="Find the right model, agent, tool or skill in a registry of thousands. Nothing is invoked.",
    epilog="Exit codes: 0 done, 1 rejected or not found, 2 wrong usage, 3 the registry or a model is unavailable.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _common(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(help="Folder of the local registry; also MATS_HOME.", show_default=".mats", file_okay=False),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"mats {__version__}")
        raise typer.Exit
    with exit_codes():
        settings = Settings.from_env(os.environ)
    context.obj = replace(settings, home=home) if home else settings


serve.add_to(app)
search.add_to(app)
mcp.add_to(app)
registry.add_to(app)
import_.add_to(app)
preview.add_to(app)
operate.add_to(app)
enrich.add_to(app)
views.add_to(app)
replay.add_to(app)
evaluate.add_to(app)
experiment.add_to(app)
gate.add_to(app)
report.add_to(app)
dataset.add_to(app)


def main() -> None:
    """Run the command line."""
    app()
