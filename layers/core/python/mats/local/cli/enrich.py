"""`mats enrich`."""

from collections import Counter
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.table import Table

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability import Id
from mats.domain.errors import CapabilityNotFound, DependencyFailed, Fault, ReplyUnusable, RequestInvalid
from mats.domain.outcome import Outcome
from mats.domain.profile import Profile
from mats.domain.registration import Registration
from mats.local.cli.output import AsJson, Exit, complain, exit_codes, out, plain, print_json
from mats.local.cli.progress import bar
from mats.local.cli.spending import print_usage, usage_json
from mats.usecases.profile_maker import NO_WRITER

_PAGE = 16
_FIELDS = ("summary", "action", "keywords", "positive_examples", "negative_examples")


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(enrich)


def enrich(
    context: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID...", help="namespace/name; default: every capability that needs the writer."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show each raw profile beside the writer's; save nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Enrich capabilities whose profile the writer has not written yet. Needs MATS_BEDROCK=1 and AWS credentials.

    Calls no model for the others, so you can interrupt it and run it again.
    """
    with exit_codes():
        local = local_system(context.obj)
        if local.models.writer is None:
            raise DependencyFailed(NO_WRITER)
        wanted = list(map(Id, ids or ()))
        if unknown := set(wanted) - local.stores.registry.get(wanted).keys():
            raise CapabilityNotFound(min(unknown))
        if dry_run:
            _preview(local, wanted, as_json=as_json)
        else:
            _run(local, wanted or list(local.stores.registry.ids()), as_json=as_json)


def _run(local: LocalSystem, ids: list[Id], *, as_json: bool) -> None:
    outcomes = Counter[str]()
    with bar("Enriching", len(ids)) as advance:
        for step in replace(local.reconcile, page=_PAGE)(ids):
            outcomes.update(step.outcomes.values())
            advance(len(step.outcomes))
            if all(outcome in (Outcome.DEGRADED, Outcome.REFUSED) for outcome in step.outcomes.values()):
                break  # the next ones would fail, too
    if as_json:
        print_json({"capabilities": len(ids), **outcomes, **usage_json(local)})
    else:
        out.print(", ".join([f"{len(ids):,} capabilities", *(f"{n:,} {outcome}" for outcome, n in outcomes.items())]))
        print_usage(local)
    if waiting := outcomes[Outcome.DEGRADED] + outcomes[Outcome.REFUSED]:
        complain(f"{waiting:,} wait ({local.why_waiting or 'a model did not answer'}); run it again")
        raise typer.Exit(Exit.UNAVAILABLE)


def _preview(local: LocalSystem, ids: list[Id], *, as_json: bool) -> None:
    if not ids:
        raise RequestInvalid([Fault("ID", "is required with --dry-run, which calls the writer for each")])
    items, unusable = local.stores.registry.get(ids), 0
    shown: list[dict[str, Any]] = []
    for id in ids:
        try:
            before, after = _describe(local, Registration.parse(items[id]))
        except ReplyUnusable as error:
            unusable += 1
            shown.append({"id": id, "error": str(error)})
            complain(f"{id}: {error}")
            continue
        five = {"before": _five(before), "after": _five(after)}
        shown.append({"id": id, **five, "notes": after.notes, "suspicious": after.suspicious})
        if not as_json:
            _compare(before, after)
    if as_json:
        print_json({"previews": shown, **usage_json(local)})
    else:
        print_usage(local)
    if unusable:
        raise typer.Exit(Exit.UNAVAILABLE)


def _describe(local: LocalSystem, registration: Registration) -> tuple[Profile, Profile]:
    """The raw profile and the writer's."""
    maker = local.profile_maker
    return maker.raw(registration, None), maker.describe(registration, None)


def _five(profile: Profile) -> dict[str, Any]:
    return profile.enrichment.model_dump(mode="json")


def _compare(before: Profile, after: Profile) -> None:
    out.print(plain(after.id), style="bold cyan")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("", style="dim")
    table.add_column("raw profile", overflow="fold", ratio=1)
    table.add_column("enriched profile", overflow="fold", ratio=1)
    for field in _FIELDS:
        table.add_row(field, *(plain(_readable(getattr(p.enrichment, field))) for p in (before, after)))
    out.print(table)
    for note in after.notes:
        out.print(plain(note), style="yellow")
    if after.suspicious:
        out.print(plain(f"suspicious: {'; '.join(after.suspicious)}"), style="red")


def _readable(value: str | tuple[str, ...]) -> str:
    return (value if isinstance(value, str) else "\n".join(value)) or "–"
