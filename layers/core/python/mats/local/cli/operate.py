"""The commands that repair, rebuild and enrich profiles, here or in AWS."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from mats.bootstrap import open_system
from mats.bootstrap.local import as_local, local_system
from mats.bootstrap.system import AnySystem
from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, DependencyFailed, Fault, NotPossible
from mats.domain.profile.profile import ChangeResult
from mats.local.cli import output as ui
from mats.local.cli.indexing import index
from mats.usecases.drafts import NO_WRITER


def reconcile(context: typer.Context) -> None:
    """Compare registry, profiles and index, and repair differences. You can interrupt it and run it again."""
    system = open_system(context.obj, create=False)
    outcomes, waited = Counter[str](), dict[str, int]()
    if local := as_local(system):
        outcomes["redriven"] = local.stores.queue.redrive()
        waited = {"indexed": count} if (count := index(local)[0]) else {}
        outcomes.update(waited)
    ids = sorted(id for _, page in system.reconcile.pages() for id in page)
    with ui.bar("Comparing", len(ids)) as advance:
        for step in system.reconcile(ids):
            outcomes.update(step.outcomes.values())
            outcomes.update({name: count for name, count in step.counts.items() if name not in ("compared", "sent")})
            advance(len(step.outcomes))
    _show_outcomes({**waited, "compared": len(ids)}, outcomes, system)


def reindex(context: typer.Context) -> None:
    """Fill a new index from the profiles while the current one answers; then switch to it in one step.

    Run it after a change of the mapping; after a change of the encoder, also run `mats backfill`. You can interrupt it
    and run it again.
    """
    system = open_system(context.obj, create=False)
    counts = Counter({"profiles": 0, "written": 0})
    with ui.bar("Reindexing", None) as advance:
        for step in system.reindex():
            counts.update(step.counts)
            advance(step.counts["profiles"])
    summary: dict[str, Any] = {**counts, "index": system.stores.generations.current()}
    ui.show(summary, ", ".join(f"{name}: {ui.readable(value)}" for name, value in summary.items()))


def backfill(context: typer.Context) -> None:
    """Renew profiles that are stale after a change of the prompt, the writer or the encoder.

    Calls no model for the others, so you can interrupt it and run it again.
    """
    system = open_system(context.obj, create=False)
    outcomes: Counter[str] = Counter()
    ids = sorted(system.stores.registry.ids())
    with ui.bar("Renewing", len(ids)) as advance:
        for step in system.backfill(ids):
            outcomes.update(step.outcomes.values())
            advance(step.counts["compared"])
    _show_outcomes({"compared": len(ids)}, outcomes, system)


def _show_outcomes(total: Mapping[str, int], outcomes: Counter[str], system: AnySystem) -> None:
    counts = {**total, **{str(outcome): count for outcome, count in outcomes.items() if count}}
    text = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
    ui.show_with_usage(system, counts, text)
    if waiting := outcomes[ChangeResult.DEGRADED] + outcomes[ChangeResult.REFUSED]:
        ui.complain(f"{waiting:,} wait ({system.why_waiting or 'a model did not answer'}); run it again")
        raise typer.Exit(ui.Exit.UNAVAILABLE)


_PAGE = 16


def enrich(
    context: typer.Context,
    ids: Annotated[
        list[str] | None,
        ui.argument("namespace/name, sparse or not; default: every capability that needs the writer.", metavar="ID..."),
    ] = None,
    namespace: Annotated[
        str, ui.option("Enrich all capabilities of this namespace and those below, sparse or not.")
    ] = "",
) -> None:
    """Enrich capabilities whose profile the writer has not written yet. Needs MATS_LLM_URL, or MATS_BEDROCK=1.

    You can interrupt it and run it again. Without IDs and namespace, MATS_ENRICH decides which need the writer. Enrich
    similar capabilities together: one alone draws requests that the others serve as well.
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
    outcomes = Counter[str]()
    chosen = wanted or list(local.stores.registry.ids())
    maker = replace(local.profile_maker, sparse_only=local.profile_maker.sparse_only and not wanted)
    with ui.bar("Enriching", len(chosen)) as advance:
        for step in replace(local.reconcile, page=_PAGE, enrich=replace(local.enrich, maker=maker))(chosen):
            outcomes.update(step.outcomes.values())
            advance(len(step.outcomes))
            if all(outcome in (ChangeResult.DEGRADED, ChangeResult.REFUSED) for outcome in step.outcomes.values()):
                break  # the next ones would fail, too
    _show_outcomes({"capabilities": len(chosen)}, outcomes, local)
