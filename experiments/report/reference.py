"""The reference pages under docs/reference, generated from the code: settings, commands, options of a deployment.

`python -m experiments.report.reference` (`make docs`) writes them; a test fails when they are stale. `/openapi.json` is
the reference of the API.
"""

import sys
from dataclasses import Field, fields
from typing import Any

from typer import Context
from typer.cli import get_docs_for_click
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


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    rows = "".join(f"| {' | '.join(_row(setting))} |\n" for setting in fields(Settings))
    mats = get_command(app)
    commands = get_docs_for_click(obj=mats, ctx=Context(mats), name="mats")
    texts = {"settings.md": _SETTINGS + rows, "cli.md": commands, "deployment.md": _DEPLOYMENT + context.table()}
    return {name: f"{_NOTE}\n\n{text}" for name, text in texts.items()}


def _row(setting: Field[Any]) -> tuple[str, str, str]:
    value = int(setting.default) if isinstance(setting.default, bool) else setting.default
    shown = "" if value in (None, "", ()) else f"`{value}`"
    return f"`{variable_of(setting.name)}`", shown, " ".join(setting.metadata["help"].split()).replace("|", "\\|")


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        sys.stderr.write(f"docs/reference/{name}\n")
