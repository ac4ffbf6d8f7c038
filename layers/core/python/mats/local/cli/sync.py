"""`mats sync`, and `mats source`: the sources that it reads again."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.text import Text

from mats.bootstrap.local import LocalSystem, SystemClock, local_system, source_book, table_target
from mats.domain.errors import Fault, NotPossible, RequestInvalid
from mats.domain.profile.changes import ChangeClass, worst
from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.domain.text.redaction import redact_arguments
from mats.local.cli.import_ import fail_if_waiting
from mats.local.cli.indexing import index
from mats.local.cli.output import (
    AsJson,
    Exit,
    IntoNamespace,
    Live,
    bar,
    note,
    out,
    plain,
    print_json,
    print_result,
    table_of,
)
from mats.local.imports.files import is_address
from mats.local.imports.importer import check_namespace
from mats.local.imports.sources import (
    LIVE,
    Reading,
    definition_json,
    location_text,
    open_reading,
    parse_location,
    state_json,
)
from mats.local.imports.syncing import DryRunSources, DryRunTarget, Sync, Synced, age
from mats.ports import SourceBook, SourceState, SyncTarget
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
    what: Annotated[list[str], typer.Argument(metavar="WHAT...", help=f"One file, folder or address; or {LIVE}.")],
    name: Annotated[str, typer.Option(help="Its name; by default from its address, path or command.")] = "",
    namespace: IntoNamespace = "",
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


_TELLING = (ChangeClass.BREAKING, ChangeClass.DANGEROUS)
_MOST_SHOWN = 20  # Lines of each kind for a source on a terminal; JSON is complete


def sync(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Sources; by default all of them.")
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove entries that a source no longer lists.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --prune: remove even more than a fifth of a source's entries.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Read MCP registries whole, not only what changed since the last sync.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")] = False,
    table: Annotated[
        str, typer.Option(help="Write to this DynamoDB table, not to the local registry.", show_default=False)
    ] = "",
    region: Annotated[str, typer.Option(help="The region of --table; by default AWS_REGION.", show_default=False)] = "",
    as_json: AsJson = False,
) -> None:
    """Read the sources again and register what is new or changed.

    Entries that a source no longer lists are reported; `--prune` removes them. It keeps entries that another source
    lists or that someone else has changed, and it needs `--force` to remove more than a fifth of a source's entries.
    The first sync of a source overwrites registrations with the same ids, as `mats import` does; later syncs do not
    overwrite changes by others. If a source cannot be read, its entries stay and the other sources are synced. After an
    interruption, run the command again: unchanged entries are not written.
    """
    if force and not prune:
        raise typer.BadParameter("--force is for --prune: give both, or none")
    if region and not table:
        raise typer.BadParameter("--region is for --table: give both, or none")
    settings: Settings = context.obj
    local = None if table else local_system(settings, create=False)
    bring = _sync_of(settings, local, table, region, dry_run=dry_run)
    results: list[Synced] = []
    for state in _states(bring.book.all(), names or []):
        with bar(f"Syncing {state.source.name}", None) as advance:
            results.append(bring(state, prune=prune, force=force, full=full, advance=advance))
        if not as_json:
            _show(results[-1], dry_run=dry_run)
    indexed = 0
    if local and not dry_run:
        indexed = index(local).changes
        fail_if_waiting(local)
    if as_json:
        print_json({"sources": [_as_dict(result) for result in results], "indexed": indexed, "dry_run": dry_run})
    elif not results:
        out.print("No sources yet: `mats source add` remembers one.")
    elif dry_run:
        out.print("Nothing was written.")
    if any(result.needs_attention for result in results):
        raise typer.Exit(Exit.REFUSED)


def _sync_of(settings: Settings, local: LocalSystem | None, table: str, region: str, *, dry_run: bool) -> Sync:
    """The sync of sources into the local registry, or into a table."""
    target: SyncTarget = local.stores.registry if local else table_target(table, region)
    book: SourceBook = local.stores.sources if local else source_book(settings, table)

    def open_source(source: TrackedSource, since: str) -> Reading:
        return open_reading(
            source.kind,
            source.location,
            settings,
            namespace=source.namespace,
            timeout_s=source.timeout_s,
            live=source.live,
            since=since,
        )

    if dry_run:
        target, book = DryRunTarget(target), DryRunSources(book)
    trust = local.stores.trust if local else None
    return Sync(target=target, book=book, clock=SystemClock(), open=open_source, trust=trust)


def _states(states: Sequence[SourceState], names: Sequence[str]) -> Sequence[SourceState]:
    known = {state.source.name: state for state in states}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise unknown_source(unknown)
    if len(set(names)) < len(names):
        raise RequestInvalid([Fault("NAME", "names a source twice: name it once")])
    return [known[name] for name in names] or states


def _show(result: Synced, *, dry_run: bool) -> None:
    """One line for a source, and what someone has to look at on standard error."""
    text = Text(f"{result.name}: ", style="bold")
    if result.error:
        text += Text("failed ", style="bold red") + plain(f"{result.error}; ")
    text += plain(_summary(result, dry_run=dry_run))
    out.print(text, soft_wrap=True)
    for remarks in _remarks(result):
        for line in remarks[:_MOST_SHOWN]:
            note(f"  {line}")
        if len(remarks) > _MOST_SHOWN:
            note(f"  … and {len(remarks) - _MOST_SHOWN:,} more; --json has all of them")


def _summary(result: Synced, *, dry_run: bool) -> str:
    if result.error and not result.report.listed:
        return "its entries stay as they are"
    parts = [f"{count:,} {outcome}" for outcome, count in result.report.counts.items()]
    rejected = len(result.report.rejected) - len(result.report.unreadable)
    parts += [f"{rejected:,} rejected"] if rejected else []
    parts += [f"{len(result.kept):,} left as they are"] if result.kept else []
    removed = len(result.pruned.removed) if result.pruned else 0
    parts += [f"{removed:,} {'would be removed' if dry_run else 'removed'}"] if removed else []
    if (left := len(result.gone)) and not (result.pruned and not result.pruned.refused):
        parts.append(f"{left:,} no longer listed")
    if result.pruned and result.pruned.refused:
        parts.append(f"not pruned: {result.pruned.refused}")
    return ", ".join(parts)


def _remarks(result: Synced) -> Iterator[list[str]]:
    if not result.error:
        yield [f"rejected {one.place.file} {one.place}: {one.text}" for one in result.report.rejected]
    telling = [(id, reason) for id, reasons in result.changed for reason in reasons if reason.change in _TELLING]
    yield [f"changed {id}: {reason}" for id, reason in telling]
    kept = [*result.kept, *(result.pruned.kept if result.pruned else ())]
    yield [f"left {id}: {reason}" for id, reason in kept]
    removed = list(result.pruned.removed) if result.pruned else []
    yield [f"removed {id}" for id in removed]
    pruned = result.pruned and not result.pruned.refused
    yield [] if pruned else [f"no longer listed: {id}" for id in result.gone]


def _as_dict(result: Synced) -> dict[str, Any]:
    pruned = result.pruned
    return {
        "name": result.name,
        **result.report.counts,
        "rejected": [finding.to_json() for finding in result.report.rejected],
        "classes": Counter(worst(reasons) for _, reasons in result.changed),
        "changed_entries": [{"id": id, "changes": list(map(str, reasons))} for id, reasons in result.changed],
        "left": [entry._asdict() for entry in [*result.kept, *(pruned.kept if pruned else ())]],
        "gone": list(result.gone),
        "removed": list(pruned.removed) if pruned else [],
        "not_pruned": (pruned.refused or None) if pruned else None,
        "error": result.error or None,
    }
