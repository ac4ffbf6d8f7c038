"""`mats source`: the sources that `mats sync` reads again."""

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from rich.text import Text

from mats.bootstrap.local import SystemClock, local_system, source_book
from mats.domain.errors import Fault, NotPossible, RequestInvalid
from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.domain.text.redaction import redact_arguments
from mats.local.cli.indexing import index
from mats.local.cli.output import AsJson, Live, note, out, plain, print_json, print_result, table_of
from mats.local.imports.files import is_address
from mats.local.imports.importer import check_namespace
from mats.local.imports.sources import LIVE, definition_json, location_text, parse_location, state_json
from mats.local.imports.syncing import age
from mats.settings import Settings
from mats.usecases.sync import Pruned, SourceSync

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

commands = typer.Typer(
    name="source",
    help="Manage the sources that `mats sync` reads again.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


def unknown_source(name: str) -> NotPossible:
    """The error for a name that no source has."""
    return NotPossible([Fault("NAME", f"no source {name[:80]!r}: `mats source list` shows them")])


@commands.command("add")
def add_source(
    context: typer.Context,
    what: Annotated[
        list[str],
        typer.Argument(metavar="WHAT...", help=f"One file, folder or address; or {LIVE}."),
    ],
    name: Annotated[str, typer.Option(help="Its name; by default from its address, path or command.")] = "",
    namespace: Annotated[
        str, typer.Option(help="Register under this namespace, not under those of the documents.", show_default=False)
    ] = "",
    timeout: Annotated[
        float, typer.Option(help="Timeout in seconds for each answer of the source.", min=1, max=600)
    ] = 30,
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Remember a source. Nothing is read before `mats sync`.

    A command is stored with its arguments and started at every sync: pass secrets in its environment, not as arguments.
    Adding a source again under its name replaces namespace and timeout.
    """
    check_namespace(namespace, "--namespace")
    kind, location = parse_location(what)
    if kind is SourceKind.DOCUMENT and not is_address(location[0]):
        location = (_path(location[0]),)
    if live and (kind is not SourceKind.DOCUMENT or is_address(location[0])):
        raise RequestInvalid([Fault("--live", "is for an `mcpServers` file on this machine")])
    name = name or _default_name(kind, location)
    if not _NAME.fullmatch(name):
        raise RequestInvalid(
            [Fault("--name", "must be 1 to 64 of a-z, 0-9, `.`, `_` and `-`, a letter or digit first")]
        )
    source = TrackedSource(name=name, kind=kind, location=location, namespace=namespace, live=live, timeout_s=timeout)
    book = source_book(context.obj, create=True)
    known = next((state.source for state in book.all() if state.source.name == name), None)
    if known and (known.kind, known.location) != (kind, location):
        problem = f"{name} is another source already ({location_text(known)}): give another name, or remove it first"
        raise NotPossible([Fault("--name", problem)])
    book.add(source)
    if kind is SourceKind.MCP and not is_address(location[0]) and redact_arguments(location) != location:
        note("The command is stored with an argument that looks like a secret: pass it in the environment instead.")
    text = f"{name}: {location_text(source)}; `mats sync {name}` reads it"
    print_result(definition_json(source), text, as_json=as_json)


def _path(text: str) -> str:
    """The absolute path of a file or folder that exists."""
    if text == "-":
        raise RequestInvalid([Fault("WHAT", "standard input cannot be read again: give a file or an address")])
    if "\0" in text or not Path(text).exists():
        raise NotPossible([Fault(text[:200], "does not exist: give a file, a folder or an address")])
    return str(Path(text).absolute())


def _default_name(kind: SourceKind, location: tuple[str, ...]) -> str:
    if kind is SourceKind.BEDROCK:
        return str(kind)
    if is_address(location[0]):
        text = urlsplit(location[0]).hostname or ""
    elif kind is SourceKind.MCP:
        words = [word for word in location[1:] if not word.startswith("-")]
        text = (words or [location[0]])[0].rpartition("/")[2]
    else:
        path = Path(location[0])
        text = path.name.strip(".") if path.is_dir() else path.name.strip(".").partition(".")[0]
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64]


@commands.command("list")
def list_sources(
    context: typer.Context,
    table: Annotated[
        str, typer.Option(help="Show what was synced to this DynamoDB table, not to the local registry.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show every source: its entries, its last success, its error."""
    settings: Settings = context.obj
    states, now = source_book(settings, table).all(), SystemClock().now()
    if as_json:
        print_json([state_json(state) for state in states])
        return
    if not states:
        out.print("No sources yet: `mats source add` remembers one.")
        return
    rows = table_of("source", "entries", "gone", "succeeded", "from", right=("entries", "gone"))
    for source, run, entries, gone in states:
        succeeded = age(run.succeeded, now) or "never"
        rows.add_row(*map(plain, (source.name, f"{entries:,}", gone or "", succeeded, location_text(source))))
    out.print(rows)
    for source, run, _, _ in states:
        if run.error:
            out.print(Text(f"{source.name}: ", style="bold red") + plain(run.error), soft_wrap=True)


@commands.command("remove")
def remove_source(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The name of the source.")],
    prune: Annotated[bool, typer.Option("--prune", help="Remove from the local registry what came from it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Forget a source. What came from it stays registered, unless `--prune` is given."""
    local = local_system(context.obj, create=False)
    book = local.stores.sources
    if all(state.source.name != name for state in book.all()):
        raise unknown_source(name)
    sync = SourceSync(local.stores.registry, book, name)
    count, pruned = len(sync.entries), Pruned((), ())
    if prune:
        pruned = sync.remove_all()
    else:
        sync.release(list(sync.entries))
    book.remove(name)
    if prune:
        index(local)
        for id, reason in pruned.kept:
            note(f"{id} stays: {reason}")
    outcome = {"name": name, "removed": list(pruned.removed), "kept": [entry._asdict() for entry in pruned.kept]}
    stay = f"{len(pruned.removed):,} entries removed" if prune else f"its {count:,} entries stay registered"
    print_result(outcome, f"{name}: forgotten; {stay}", as_json=as_json)
