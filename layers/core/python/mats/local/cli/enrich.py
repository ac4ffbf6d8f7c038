"""`mats enrich`."""

from collections import Counter
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.text import Text

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import CapabilityNotFound, DependencyFailed, Fault, NotPossible, ReplyUnusable, RequestInvalid
from mats.domain.profile.profile import ChangeResult, Enrichment, Profile
from mats.local.cli.output import AsJson, Exit, bar, complain, out, plain, print_json, table_of
from mats.local.cli.spending import print_usage, print_with_usage, usage_json
from mats.usecases.drafts import NO_WRITER

_PAGE = 16


def enrich(
    context: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID...", help="namespace/name, sparse or not; default: every capability that needs the writer."
        ),
    ] = None,
    namespace: Annotated[
        str, typer.Option(help="Enrich all capabilities of this namespace and those below, sparse or not.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show each raw profile beside the writer's; save nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Enrich capabilities whose profile the writer has not written yet. Needs MATS_LLM_URL, or MATS_BEDROCK=1.

    Calls no model for the others, so you can interrupt it and run it again. Without IDs and namespace, MATS_ENRICH says
    which need the writer. Capabilities that resemble each other are best enriched together: one alone draws requests
    that the others serve as well.
    """
    local = local_system(context.obj, create=False)
    if local.models.writer is None:
        raise DependencyFailed(NO_WRITER)
    wanted = list(map(Id, ids or ()))
    if unknown := set(wanted) - local.stores.registry.get(wanted).keys():
        raise CapabilityNotFound(min(unknown))
    if namespace:
        family = list(local.stores.registry.ids(namespace=namespace))
        if not family:
            raise NotPossible([Fault("--namespace", f"there is no capability in {namespace}")])
        wanted = sorted({*wanted, *family})
    if dry_run:
        _preview(local, wanted, as_json=as_json)
    else:
        _run(local, wanted, as_json=as_json)


def _run(local: LocalSystem, wanted: list[Id], *, as_json: bool) -> None:
    """Enrich these, sparse or not, or else all that need the writer."""
    outcomes = Counter[str]()
    ids = wanted or list(local.stores.registry.ids())
    maker = replace(local.profile_maker, sparse_only=local.profile_maker.sparse_only and not wanted)
    with bar("Enriching", len(ids)) as advance:
        for step in replace(local.reconcile, page=_PAGE, enrich=replace(local.enrich, maker=maker))(ids):
            outcomes.update(step.outcomes.values())
            advance(len(step.outcomes))
            if all(outcome in (ChangeResult.DEGRADED, ChangeResult.REFUSED) for outcome in step.outcomes.values()):
                break  # the next ones would fail, too
    counts = {"capabilities": len(ids), **outcomes}
    text = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    print_with_usage(local, counts, text, as_json=as_json)
    if waiting := outcomes[ChangeResult.DEGRADED] + outcomes[ChangeResult.REFUSED]:
        complain(f"{waiting:,} wait ({local.why_waiting or 'a model did not answer'}); run it again")
        raise typer.Exit(Exit.UNAVAILABLE)


def _preview(local: LocalSystem, ids: list[Id], *, as_json: bool) -> None:
    if not ids:
        raise RequestInvalid([Fault("ID", "is required with --dry-run, which calls the writer for each")])
    items, unusable = local.stores.registry.get(ids), 0
    shown: list[dict[str, Any]] = []
    for id in ids:
        try:
            registration = Registration.parse(items[id])
            before = local.profile_maker.raw(registration)
            after = local.profile_maker.describe(registration)
        except ReplyUnusable as error:
            unusable += 1
            shown.append({"id": id, "error": str(error)})
            complain(f"{id}: {error}")
            continue
        five = {side: p.enrichment.model_dump(mode="json") for side, p in (("before", before), ("after", after))}
        shown.append({"id": id, **five, "notes": after.notes, "suspicious": after.suspicious})
        if not as_json:
            _compare(before, after)
    if as_json:
        print_json({"previews": shown, **usage_json(local)})
    else:
        print_usage(local)
    if unusable:
        raise typer.Exit(Exit.UNAVAILABLE)


def _compare(before: Profile, after: Profile) -> None:
    out.print(plain(after.id), style="bold cyan")
    table = table_of("", "raw profile", "enriched profile")
    for field in Enrichment.model_fields:
        values = (getattr(profile.enrichment, field) for profile in (before, after))
        texts = (value if isinstance(value, str) else "\n".join(value) for value in values)
        table.add_row(Text(field, style="dim"), *(plain(text or "–") for text in texts))
    out.print(table)
    for note in after.notes:
        out.print(plain(note), style="yellow")
    if after.suspicious:
        out.print(plain(f"suspicious: {'; '.join(after.suspicious)}"), style="red")
