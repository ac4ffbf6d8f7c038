"""The reference pages under docs/reference, generated from the code: settings, commands, options of a deployment.

`python -m experiments.report.reference` (`make docs`) writes them; a test fails when they are stale. `/openapi.json` is
the reference of the API.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any, cast

from typer import Context
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from infra import context
from mats.local.cli.main import app
from mats.resources import REPOSITORY
from mats.settings import Settings, variable_of

FOLDER = REPOSITORY / "docs" / "reference"
_NOTE = "<!-- Written by `make docs` from the code; change it there. -->"
_SETTINGS = """# Settings

Every setting is an environment variable. Invalid values are rejected at the start, with every fault at once.

| variable | default | meaning |
|---|---|---|
"""
_DEPLOYMENT = """# Options of a deployment

Each is a `key=value` of CONTEXT, or of the context in `cdk.json`. Give the same ones at every deployment: a missing key
gets its default again. An error message names every invalid key.

"""
_COMMANDS = """# Commands

{help}

{epilog}

Every command has `--help`. `--json` prints JSON for scripts instead of tables.
"""


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    rows = "".join(f"| {' | '.join(_row(setting))} |\n" for setting in fields(Settings))
    mats = cast(TyperGroup, get_command(app))
    head = _COMMANDS.format(help=mats.help, epilog=mats.epilog)
    commands = "".join((head, _options(mats), *_commands(mats, "mats")))
    texts = {"settings.md": _SETTINGS + rows, "cli.md": commands, "deployment.md": _DEPLOYMENT + context.table()}
    return {name: f"{_NOTE}\n\n{text}" for name, text in texts.items()}


def _row(setting: Field[Any]) -> tuple[str, str, str]:
    value = int(setting.default) if isinstance(setting.default, bool) else setting.default
    shown = "" if value in (None, "", ()) else f"`{value}`"
    return f"`{variable_of(setting.name)}`", shown, " ".join(setting.metadata["help"].split()).replace("|", "\\|")


def _commands(group: TyperGroup, path: str) -> Iterator[str]:
    """The section of each command of a group; a group within it is its commands."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{path} {name}")
        elif isinstance(command, TyperCommand):
            yield f"\n## `{path} {name}`\n\n{_text(command)}\n{_options(command)}"


def _text(command: TyperCommand) -> str:
    """What a command does, in one paragraph."""
    text = " ".join((command.help or "").split())
    return f"{text} Takes `--json`." if any("--json" in parameter.opts for parameter in command.params) else text


def _options(command: TyperCommand | TyperGroup) -> str:
    """A line for each argument and option but `--json`, which means the same everywhere."""
    context = Context(command)
    records = [each.get_help_record(context) for each in command.params if "--json" not in each.opts]
    lines = [_line(*record) for record in records if record is not None]
    return "\n" + "".join(lines) if lines else ""


def _line(name: str, text: str) -> str:
    values = re.sub(r" <(?:list\[)?([^\]>]*)\]?>", lambda found: f" {found[1]}", name)
    return f"- `{values}`: {' '.join(text.split())}\n"


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        sys.stderr.write(f"docs/reference/{name}\n")
