"""The commands that keep registry, profiles and index in step: on this machine, or in AWS where the settings say so."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from mats.bootstrap import AnySystem, open_system
from mats.bootstrap.local import as_local
from mats.domain.capability import Id
from mats.domain.outcome import Outcome
from mats.local.cli.output import AsJson, Exit, complain, exit_codes, out, plain, print_json
from mats.local.cli.progress import bar
from mats.local.cli.registry import index
from mats.local.cli.spending import print_usage, usage_json

After = Annotated[str, typer.Option(metavar="ID", help="Go on behind this id, as an earlier run has said.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(reconcile)
    app.command()(reindex)
    app.command()(backfill)


def reconcile(context: typer.Context, after: After = "", as_json: AsJson = False) -> None:
    """Compare registry, profiles and index, and repair what has drifted apart. Safe at any time."""
    with exit_codes():
        system = open_system(context.obj)
        outcomes: Counter[str] = Counter()
        if local := as_local(system):
            outcomes["redriven"] = local.stores.queue.redrive()
            index(local)
        ids = _behind(after, system.reconcile.everything())
        with _pages("Comparing", ids) as done:
            for step in system.reconcile(ids):
                outcomes.update(step.outcomes.values())
                outcomes["reindexed"] += step.reindexed
                outcomes["orphans"] += step.orphans
                outcomes["purged"] += step.purged
                done(len(step.outcomes))
        _say({"compared": len(ids)}, outcomes, system, as_json=as_json)


def reindex(
    context: typer.Context,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback", help="Let the index before this one answer again; it has missed nothing. In AWS only."
        ),
    ] = False,
    retire: Annotated[
        bool, typer.Option("--retire", help="Delete every index but the one that answers. In AWS only; takes a minute.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the index anew from the profiles, while the old one answers; then change over in one step.

    Needed after a change of the mapping. Vectors are those that the profiles have; of another encoder, `mats backfill`
    makes them. Writes that arrive meanwhile reach both. Stopped, it goes on when it is run again.
    """
    with exit_codes():
        if rollback and retire:
            raise typer.BadParameter("--rollback and --retire exclude each other")
        system = open_system(context.obj)
        generations = system.stores.generations
        if rollback:
            summary: dict[str, Any] = {"index": generations.roll_back().name}
        elif retire:
            summary = {"retired": list(generations.retire()), "index": generations.current()}
        else:
            summary = _run_reindex(system)
        if as_json:
            print_json(summary)
        else:
            out.print(plain(", ".join(f"{what}: {_readable(value)}" for what, value in summary.items())))


def _run_reindex(system: AnySystem) -> dict[str, Any]:
    looked_at = written = 0
    with bar("Reindexing", None) as advance:
        for step in system.reindex():
            looked_at += step.looked_at
            written += step.written
            advance(step.looked_at)
    return {"profiles": looked_at, "written": written, "index": system.stores.generations.current()}


def _readable(value: object) -> str:
    return (
        f"{value:,}"
        if isinstance(value, int)
        else ", ".join(value) or "none"
        if isinstance(value, list)
        else str(value)
    )


def backfill(
    context: typer.Context,
    per_minute: Annotated[int, typer.Option(min=0, help="At most so many capabilities a minute; 0: no limit.")] = 0,
    after: After = "",
    as_json: AsJson = False,
) -> None:
    """Describe and encode anew what another prompt, writer or encoder has made stale.

    What is current costs nothing. Stopped, it does what is left when it is run again.
    """
    with exit_codes():
        system = open_system(context.obj)
        outcomes: Counter[str] = Counter()
        ids = _behind(after, system.stores.registry.ids())
        with _pages("Renewing", ids) as done:
            for step in system.backfill(per_minute)(ids):
                outcomes.update(step.outcomes.values())
                done(step.looked_at)
        _say({"compared": len(ids)}, outcomes, system, as_json=as_json)


def _behind(after: str, ids: Iterator[Id] | Sequence[Id]) -> list[Id]:
    return sorted(id for id in ids if id > after)


@contextmanager
def _pages(title: str, ids: Sequence[Id]) -> Iterator[Any]:
    """Progress over ids; if it ends early, where to go on is said."""
    finished = 0
    with bar(title, len(ids)) as advance:

        def done(count: int) -> None:
            nonlocal finished
            finished += count
            advance(count)

        try:
            yield done
        except BaseException:
            if finished:
                complain(f"stopped; to go on: --after {ids[finished - 1]!r}")
            raise


def _say(summary: dict[str, int], outcomes: Counter[str], system: AnySystem, *, as_json: bool) -> None:
    counts = {**summary, **{str(what): count for what, count in outcomes.items() if count}}
    if as_json:
        print_json({**counts, **usage_json(system)})
    else:
        out.print(", ".join(f"{count:,} {what}" for what, count in counts.items()))
        print_usage(system)
    if waiting := outcomes[Outcome.DEGRADED]:
        complain(f"{waiting:,} wait for a model that did not answer ({system.why_waiting}); run it again when it does")
        raise typer.Exit(Exit.UNAVAILABLE)
