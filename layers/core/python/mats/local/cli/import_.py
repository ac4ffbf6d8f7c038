"""`mats import`."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from mats.bootstrap.local import DATABASE, Local
from mats.bootstrap.models import bedrock_catalogue
from mats.domain.errors import DependencyFailed, Fault, RequestInvalid
from mats.domain.placement import Placed
from mats.domain.registration import Registration
from mats.local.cli.console import AsJson, Exit, err, exit_codes, out, plain, print_json
from mats.local.cli.progress import bar
from mats.local.cli.registry import index
from mats.local.cli.spending import show_spent, spent_json
from mats.local.imports import addresses, mcp_client
from mats.local.imports.dry_run import DryRunRegistry
from mats.local.imports.dynamodb_files import write_requests
from mats.local.imports.formats import Source
from mats.local.imports.importer import Importer
from mats.local.imports.report import Place, Rejection, Remark, Report
from mats.ports import Item
from mats.settings import Settings

_MOST_SHOWN = 50
"""Lines of a report on a terminal; JSON has all of them."""


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(name="import")(import_)


def import_(
    context: typer.Context,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...",
            help="Files, folders, addresses or - for standard input; or `mcp -- COMMAND...`, `mcp URL`, `bedrock`.",
        ),
    ],
    namespace: Annotated[
        str, typer.Option(help="Register under this namespace, whatever the documents say.", show_default=False)
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be registered; keep nothing.")] = False,
    to_items: Annotated[
        Path | None,
        typer.Option(help="Write the items into this folder for `aws dynamodb batch-write-item`; keep nothing here."),
    ] = None,
    table: Annotated[
        str, typer.Option(help="The DynamoDB table that --to-items is for; mats-registry in the stacks.")
    ] = "mats-registry",
    timeout: Annotated[
        float, typer.Option(help="Seconds that a live MCP server has to list its tools.", min=1, max=600)
    ] = 30,
    as_json: AsJson = False,
) -> None:
    """Register many capabilities, from the descriptions that there are already.

    Reads JSON Lines of registrations or of retrieval data sets (`_id`, `type`, `name`, `description`), also .gz; MCP
    server.json files, tools/list results and live servers; A2A agent cards; OpenAPI 3 documents; folders of Agent
    Skills; and what Bedrock lists. Good rows are kept and bad ones are named with all their faults. Stop it when you
    like and run it again: it goes on from there.
    """
    began = time.monotonic()
    with exit_codes():
        settings: Settings = context.obj
        _check(namespace)
        take = _taker(what, settings, timeout)
        if dry_run or to_items:
            report = _dry_run(take, settings, namespace, to_items, table, as_json=as_json)
        else:
            report = _run(take, Local(settings), namespace, began, as_json=as_json)
    if report.rejected:
        raise typer.Exit(Exit.REFUSED)


_Take = Callable[[Importer, Callable[[int], None]], None]
"""Has an importer take what was asked for."""


def _check(namespace: str) -> None:
    """Refuse a namespace that is none before it is every row's fault."""
    if namespace:
        Registration.parse({"namespace": namespace, "name": "x", "kind": "tool"})


def _taker(what: list[str], settings: Settings, timeout_s: float) -> _Take:
    """What the arguments ask for. A file called `mcp` or `bedrock` is given as ./mcp."""
    match what:
        case ["mcp"]:
            raise RequestInvalid([Fault("mcp", "say which server: `mats import mcp -- COMMAND...`, or its address")])
        case ["mcp", url] if addresses.is_address(url):
            return _live(addresses.redact(url), url, lambda: mcp_client.listed_by_address(url, timeout_s=timeout_s))
        case ["mcp", *command]:
            return _live(command[0], "", lambda: mcp_client.listed_by_command(command, timeout_s=timeout_s))
        case ["bedrock"]:
            return _live("bedrock", "", lambda: bedrock_catalogue(settings))
    return lambda importer, advance: _files(importer, what, advance)


def _files(importer: Importer, names: list[str], advance: Callable[[int], None]) -> None:
    for name in names:
        importer.import_name(name, advance)


def _live(name: str, url: str, asked: Callable[[], Any]) -> _Take:
    def take(importer: Importer, advance: Callable[[int], None]) -> None:
        source = Source(name, importer.namespace, server=addresses.without_query(url))
        if source.server != url:
            note = Fault("endpoint", "is kept without what stands behind ? or #, which may be a secret")
            importer.report.noted.append(Remark(Place(name), [note]))
        importer.import_values(source, iter([(Place(name), asked())]), advance)

    return take


def _run(take: _Take, local: Local, namespace: str, began: float, *, as_json: bool) -> Report:
    importer = Importer(local.registry, namespace)
    with bar("Registering", None) as advance:
        take(importer, advance)
    indexed = index(local)
    seconds = time.monotonic() - began
    report = importer.report
    if as_json:
        print_json({**_report(report), "indexed": indexed, "seconds": round(seconds, 2), **spent_json(local)})
    else:
        _show_remarks(report)
        rate = f" ({indexed / seconds:,.0f} a second)" if indexed and seconds else ""
        out.print(f"{_rows(report)} in {seconds:,.1f} s: {_counts(report)}; {indexed:,} indexed{rate}")
        show_spent(local)
    _complain_of_waiting(local)
    return report


def _dry_run(
    take: _Take, settings: Settings, namespace: str, to_items: Path | None, table: str, *, as_json: bool
) -> Report:
    """Do everything but register. A registry that is there is compared with; none is made."""
    there = not settings.in_aws and (settings.home / DATABASE).exists()
    registry = DryRunRegistry(Local(settings).registry if there else None)
    importer = Importer(registry, namespace)
    take(importer, lambda count: None)
    report, items = importer.report, list(registry.items.values())
    written = write_requests(items, table, to_items) if to_items else 0
    if as_json:
        placed = [{"id": id, "placed": happened} for id, happened in registry.placed.items()]
        files = {"request_files": written} if to_items else {}
        print_json({**_report(report), "dry_run": True, **files, "would_be": placed, "items": items})
        return report
    for position, item in enumerate(items):
        if position == _MOST_SHOWN:
            out.print(f"… and {len(items) - _MOST_SHOWN:,} more; --json has all of them", style="dim")
            break
        _show_item(item)
    _show_remarks(report)
    out.print(f"{_rows(report)}: would be {_counts(report)}; nothing was registered")
    if to_items:
        out.print(plain(f"{len(items):,} items in {written:,} request files in {to_items}"))
    return report


def _show_item(item: Item) -> None:
    out.print(plain(f"{item['namespace']}/{item['name']}"), style="bold cyan", end="  ")
    out.print(plain(f"{item['kind']}  {item.get('endpoint', '')}"), style="dim", soft_wrap=True)
    if item.get("description"):
        out.print(plain(f"  {item['description'][:160]}"), soft_wrap=True)


def _complain_of_waiting(local: Local) -> None:
    """Say what could not be made findable.

    Raises:
        DependencyFailed: there is something.
    """
    if failing := local.events.failing():
        what = f"{failing:,} changes are safe but wait" + (
            f" ({local.why_waiting})" if local.why_waiting else " and are not findable yet"
        )
        raise DependencyFailed(f"{what}; `mats reconcile` tries again")


def _report(report: Report) -> dict[str, Any]:
    return {
        "rows": report.rows,
        "new": report.placed[Placed.NEW],
        "changed": report.placed[Placed.CHANGED],
        "unchanged": report.placed[Placed.UNCHANGED],
        "rejected": [_rejection(row) for row in report.rejected],
        "notes": [_remark(row) for row in report.noted],
        "passed_over": [{"file": file, "reason": reason} for file, reason in report.passed_over],
        "registered": [
            {"id": id, "placed": placed, "file": place.file, "where": place.where}
            for id, placed, place in report.registered
        ],
    }  # fmt: skip


def _rejection(rejection: Rejection) -> dict[str, Any]:
    return {**rejection.place._asdict(), "faults": [fault._asdict() for fault in rejection.faults]}


def _remark(remark: Remark) -> dict[str, Any]:
    return {**remark.place._asdict(), "notes": [note._asdict() for note in remark.notes]}


def _rows(report: Report) -> str:
    return f"{report.rows:,} row{'' if report.rows == 1 else 's'}"


def _counts(report: Report) -> str:
    counts = ", ".join(f"{report.placed[what]:,} {what}" for what in (Placed.NEW, Placed.CHANGED, Placed.UNCHANGED))
    passed = f", {len(report.passed_over):,} files passed over" if report.passed_over else ""
    return f"{counts}, {len(report.rejected):,} rejected{passed}"


def _show_remarks(report: Report) -> None:
    """Every rejection, the first notes, and what a document would change of what is registered."""
    for row in report.rejected:
        _show("rejected ", "red", row.place, "; ".join(map(str, row.faults)))
    for noted in report.noted[:_MOST_SHOWN]:
        _show("note ", "yellow", noted.place, "; ".join(map(str, noted.notes)))
    if len(report.noted) > _MOST_SHOWN:
        err.print(f"… and {len(report.noted) - _MOST_SHOWN:,} more notes; --json has all of them", style="dim")
    changed = [(id, place) for id, placed, place in report.registered if placed is Placed.CHANGED]
    for id, place in changed[:_MOST_SHOWN]:
        _show("changed ", "cyan", place, id)


def _show(title: str, style: str, place: Place, text: str) -> None:
    file, line, where = place
    position = ":".join([file, *([str(line)] if line or not where else []), *([where] if where else [])])
    err.print(Text(title, style=style) + plain(f"{position}: {text}"), soft_wrap=True)
