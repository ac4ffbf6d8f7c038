"""The commands and their common options."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mats import __version__
from mats.bootstrap.local import is_missing
from mats.local.cli.doctor import doctor
from mats.local.cli.evaluation import commands as dataset_commands
from mats.local.cli.evaluation import evaluate, gate
from mats.local.cli.feedback import confirm, feedback, use, withdraw
from mats.local.cli.import_ import import_
from mats.local.cli.move import backup, export, restore
from mats.local.cli.operate import backfill, enrich, reconcile, reindex
from mats.local.cli.output import ExitCodes, note, option, with_json
from mats.local.cli.preview import preview
from mats.local.cli.registry import add, edit, erase, list_, remove, show, stats
from mats.local.cli.search import call, search
from mats.local.cli.serve import commands as token_commands
from mats.local.cli.serve import mcp, serve
from mats.local.cli.sync import commands as source_commands
from mats.local.cli.sync import init, sync
from mats.local.cli.trust import review, teach, trust
from mats.settings import Settings, SettingsInvalid, variable_of

app = typer.Typer(
    name="mats",
    cls=ExitCodes,
    help="Find the right model, agent, tool or skill in a registry of thousands; `mats call` calls one.",
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
        Path | None, option("Folder of the local registry; also MATS_HOME.", show_default=".mats", file_okay=False)
    ] = None,
    version: Annotated[bool, option("Print the version and exit.", "--version", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"mats {__version__}")
        raise typer.Exit
    examined = context.invoked_subcommand == "doctor"
    for text in Settings.unknown(os.environ if not examined else ()):
        note(text)
    try:
        settings = Settings.from_env(os.environ)
    except SettingsInvalid as error:
        if not examined:
            raise
        context.obj = error
        return
    context.obj = replace(settings, home=home) if home else settings
    named = home or variable_of("home") in os.environ or context.invoked_subcommand in ("serve", "mcp")
    if not named and not settings.in_aws and is_missing(settings):
        context.call_on_close(partial(_show_new_registry, settings))


def _show_new_registry(settings: Settings) -> None:
    if not is_missing(settings):
        note(f"Made a registry in {settings.home.absolute()}: --home or MATS_HOME names another.")


_PLAIN = (serve, init, mcp, export, gate)
"""Commands without `--json`; the order of all is that of the help."""
_COMMANDS: tuple[Callable[..., None], ...] = (
    serve, init, doctor, search, call, feedback, confirm, withdraw, teach, list_, mcp, add, edit, remove,
    trust, review, import_, sync, preview, export, backup, restore, reconcile, reindex, backfill,
    enrich, erase, show, stats, use, evaluate, gate,
)  # fmt: skip
for command in _COMMANDS:
    name = command.__name__.removesuffix("_").replace("_", "-")
    app.command(name)(command if command in _PLAIN else with_json(command))
app.add_typer(source_commands, name="source")
app.add_typer(dataset_commands, name="dataset")
app.add_typer(token_commands, name="token")


def main() -> None:
    app()
