"""The commands that repair and rebuild profiles and index, and switch models, on this machine or in AWS."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from mats.bootstrap import AnySystem, open_system
from mats.bootstrap.local import as_local
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.profile import ChangeResult
from mats.local.cli.indexing import index
from mats.local.cli.output import AsJson, Bar, Exit, bar, complain, print_result, readable
from mats.local.cli.spending import print_with_usage
from mats.settings import Settings

After = Annotated[str, typer.Option(metavar="ID", help="Continue after this id, which an interrupted run has printed.")]
_MODEL = "A Converse model id or ARN, `none` to turn it off, or `default` for the configured model."


def reconcile(context: typer.Context, after: After = "", as_json: AsJson = False) -> None:
    """Compare registry, profiles and index, and repair differences. Safe at any time."""
    system = open_system(context.obj, create=False)
    outcomes: Counter[str] = Counter()
    if local := as_local(system):
        outcomes["redriven"] = local.stores.queue.redrive()
        index(local)
    ids = sorted(id for _, page in system.reconcile.pages() for id in page if id > after)
    with _pages("Comparing", ids) as advance:
        for step in system.reconcile(ids):
            outcomes.update(step.outcomes.values())
            outcomes.update({name: count for name, count in step.counts.items() if name not in ("compared", "sent")})
            advance(len(step.outcomes))
    _print_outcomes(len(ids), outcomes, system, as_json=as_json)


def reindex(
    context: typer.Context,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Switch back to the previous index, which has all writes. In AWS only.")
    ] = False,
    retire: Annotated[
        bool, typer.Option("--retire", help="Delete every index but the current one. In AWS only; takes a minute.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fill a new index from the profiles while the current one answers; then switch to it in one step.

    Needed after a change of the mapping. Vectors are copied from the profiles; after a change of the encoder, run
    `mats backfill`. Writes go to both indices meanwhile. An interrupted run continues when you run it again.
    """
    if rollback and retire:
        raise typer.BadParameter("--rollback and --retire exclude each other: give one of them")
    system = open_system(context.obj, create=False)
    generations = system.stores.generations
    if rollback:
        summary: dict[str, Any] = {"index": generations.roll_back().name}
    elif retire:
        summary = {"retired": list(generations.retire()), "index": generations.current()}
    else:
        summary = _run_reindex(system)
    text = ", ".join(f"{name}: {readable(value, ', ')}" for name, value in summary.items())
    print_result(summary, text, as_json=as_json)


def _run_reindex(system: AnySystem) -> dict[str, Any]:
    counts = Counter({"profiles": 0, "written": 0})
    with bar("Reindexing", None) as advance:
        for step in system.reindex():
            counts.update(step.counts)
            advance(step.counts["profiles"])
    return {**counts, "index": system.stores.generations.current()}


def backfill(
    context: typer.Context,
    per_minute: Annotated[int, typer.Option(min=0, help="Rate limit in capabilities per minute; 0: none.")] = 0,
    after: After = "",
    as_json: AsJson = False,
) -> None:
    """Renew profiles that are stale after a change of the prompt, the writer or the encoder.

    Calls no model for the others, so you can interrupt it and run it again.
    """
    system = open_system(context.obj, create=False)
    outcomes: Counter[str] = Counter()
    ids = sorted(id for id in system.stores.registry.ids() if id > after)
    with _pages("Renewing", ids) as advance:
        for step in system.backfill(per_minute)(ids):
            outcomes.update(step.outcomes.values())
            advance(step.counts["compared"])
    _print_outcomes(len(ids), outcomes, system, as_json=as_json)


@contextmanager
def _pages(title: str, ids: Sequence[Id]) -> Iterator[Bar]:
    """Progress over ids; if it is interrupted, prints how to continue."""
    with bar(title, len(ids)) as finished:
        try:
            yield finished
        except BaseException:
            if finished.count:
                complain(f"interrupted; to continue: --after {ids[finished.count - 1]!r}")
            raise


def _print_outcomes(compared: int, outcomes: Counter[str], system: AnySystem, *, as_json: bool) -> None:
    counts = {"compared": compared, **{str(outcome): count for outcome, count in outcomes.items() if count}}
    text = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
    print_with_usage(system, counts, text, as_json=as_json)
    if waiting := outcomes[ChangeResult.DEGRADED] + outcomes[ChangeResult.REFUSED]:
        complain(f"{waiting:,} wait for a model that did not answer ({system.why_waiting}); run it again")
        raise typer.Exit(Exit.UNAVAILABLE)


def switch(
    context: typer.Context,
    rerank: Annotated[str | None, typer.Option(metavar="MODEL", help=f"The reranker: {_MODEL}")] = None,
    writer: Annotated[str | None, typer.Option(metavar="MODEL", help=f"The writer: {_MODEL}")] = None,
    show: Annotated[bool, typer.Option("--show", help="Show the choice and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Turn off or replace a model of the system in AWS without a deployment. Takes effect within a minute.

    The functions' roles must allow the model; otherwise answers are degraded, and the log names the cause. After a
    switch of the writer, `mats backfill` renews the profiles of the one before.
    """
    if show and (rerank or writer):
        raise typer.BadParameter("--show changes nothing: leave out --rerank and --writer")
    settings: Settings = context.obj
    choices = open_system(settings).stores.model_switch if settings.in_aws else None
    if choices is None:
        fault = "works in AWS only: set MATS_SWITCHES_TABLE and the other settings of the functions"
        raise RequestInvalid([Fault("", f"mats switch {fault}; elsewhere, set MATS_RERANK_MODEL or MATS_WRITER_MODEL")])
    if rerank is not None:
        choices.choose("rerank", _model(rerank, "--rerank"))
    if writer is not None:
        choices.choose("writer", _model(writer, "--writer"))
    chosen = choices.load()
    switched = {"rerank_model": chosen.rerank, "writer_model": chosen.writer}
    configured = {"rerank_model": settings.rerank_model, "writer_model": settings.writer_model}
    models = {name: model or configured[name] for name, model in switched.items()}
    text = "\n".join(
        f"{name}: {model} ({'switched' if switched[name] else 'as configured'})" for name, model in models.items()
    )
    print_result({**models, "switched": switched}, text, as_json=as_json)


def _model(text: str, option: str) -> str | None:
    """The choice for the text of an option; None for the configured model."""
    if not text.strip():
        raise RequestInvalid([Fault(option, "must be a model id, `none` or `default`")])
    return None if text == "default" else text.strip()
