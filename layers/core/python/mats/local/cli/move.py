"""The commands that carry a registry elsewhere: export, backup and restore."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer

from mats.bootstrap.local import Contents, back_up, local_system, open_backup, replacing
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, NotPossible, StorageUnusable
from mats.domain.profile.profile import Profile
from mats.domain.text.fence import escape_hidden
from mats.local.cli import output as ui
from mats.local.cli.import_ import fail_if_waiting
from mats.local.cli.indexing import index
from mats.local.imports.exports import held_line, trust_line
from mats.ports import Item

_MOST_NAMED = 10  # Ids of what is lost

Force = Annotated[bool, ui.option("Replace the file if it exists.", "--force")]


def export(
    context: typer.Context,
    file: Annotated[str, ui.argument("Where to write; - is standard output.")] = "-",
    force: Force = False,
) -> None:
    """Write every registration and all trust as JSON Lines, for `mats import --with-trust`.

    Lines are in order of id, so that two exports can be compared. Of profiles, only those are exported that hold back a
    change; `mats backup` has all. Of a damaged registry, what can be read is exported, and the exit code is 1.
    """
    local = local_system(context.obj, create=False)
    _check_free(Path(file), force=force or file == "-")
    capabilities = trust = 0
    lost: list[Id] = []
    with _output(file) as out:
        for entry in local.stores.snapshot(lost):
            line: Item
            if isinstance(entry, Profile):
                line = held_line(entry)
            elif isinstance(entry, tuple):
                trust += 1
                line = trust_line(*entry)
            else:
                capabilities += 1
                line = entry
            out.write(escape_hidden(json.dumps(line, ensure_ascii=False)) + "\n")
    counts = (
        ui.count_of(capabilities, "capability", "capabilities"),
        ui.count_of(trust, "row of trust", "rows of trust"),
    )
    ui.note(f"{' and '.join(counts)} exported")
    if ids := sorted({*lost}):
        named = f"{', '.join(ids[:_MOST_NAMED])}{', …' if ids[_MOST_NAMED:] else ''}"
        ui.complain(f"{len(ids):,} could not be read, because the file is damaged ({named}): register them again")
        raise typer.Exit(ui.Exit.REFUSED)


def _check_free(file: Path, *, force: bool) -> None:
    if file.is_file() and not force:
        raise NotPossible([Fault("", f"{file} exists: choose another name, or replace it with --force")])


@contextmanager
def _output(file: str) -> Iterator[IO[str]]:
    if file == "-":
        yield sys.stdout
        return
    path = Path(file)
    try:
        with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as out:
            yield out
            out.flush()
    except OSError as error:
        reason = error.strerror or "another process writes it"
        raise StorageUnusable(f"{path} cannot be written: {reason}; name a file in a folder that is yours") from error


def backup(
    context: typer.Context,
    file: Annotated[Path, ui.argument("The file to write.", dir_okay=False)],
    force: Force = False,
) -> None:
    """Write the whole registry to one file and verify it; the service can keep running.

    `mats restore` reads it. Keep it like the registry itself: hidden capabilities are in it, too.
    """
    local = local_system(context.obj, create=False)
    _check_free(file, force=force)
    if not file.parent.is_dir():
        raise NotPossible([Fault("", f"{file.parent} is not a folder: make it first")])
    contents = back_up(local.stores.database, file)
    text = f"{file}: {_spell_out(contents)}; {file.stat().st_size:,} bytes, verified"
    ui.show({"file": str(file), **contents._asdict()}, text)


def restore(
    context: typer.Context, file: Annotated[Path, ui.argument("A file that `mats backup` wrote.", dir_okay=False)]
) -> None:
    """Restore a backup into an empty or new folder: all but sources, whose commands `mats sync` would run.

    Held changes stay held, and the version approved last stays findable.
    """
    with open_backup(file) as backup:
        local = local_system(context.obj)
        contents = local.stores.restore(backup)
    indexed, _ = index(local)
    outcome = {"home": str(context.obj.home), **contents._asdict(), "indexed": indexed}
    ui.show_with_usage(local, outcome, f"{context.obj.home}: {_spell_out(contents)} restored; {indexed:,} indexed")
    fail_if_waiting(local)


def _spell_out(contents: Contents) -> str:
    counts = (
        (contents.capabilities, "capability", "capabilities"),
        (contents.trust, "row of trust", "rows of trust"),
        (contents.receipts, "receipt", ""),
        (contents.reports, "reported or taught answer", ""),
    )
    return ", ".join(ui.count_of(*each) for each in counts)
