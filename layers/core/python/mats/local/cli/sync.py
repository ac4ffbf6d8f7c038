"""`mats sync`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from mats.bootstrap.local import LocalSystem, SystemClock, local_system, source_book, table_target
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.sync import TrackedSource
from mats.local.cli.import_ import fail_if_waiting
from mats.local.cli.indexing import index
from mats.local.cli.output import AsJson, Exit, bar, note, out, plain, print_json
from mats.local.cli.source import unknown_source
from mats.local.imports.sources import Reading, open_reading
from mats.local.imports.syncing import DryRunSources, DryRunTarget, Sync, Synced
from mats.ports import SourceBook, SourceState, SyncTarget
from mats.settings import Settings

_MOST_SHOWN = 20
"""Lines of each kind for a source on a terminal; JSON is complete."""


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
    return Sync(target=target, book=book, clock=SystemClock(), open=open_source)


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
        "left": [entry._asdict() for entry in [*result.kept, *(pruned.kept if pruned else ())]],
        "gone": list(result.gone),
        "removed": list(pruned.removed) if pruned else [],
        "not_pruned": (pruned.refused or None) if pruned else None,
        "error": result.error or None,
    }
