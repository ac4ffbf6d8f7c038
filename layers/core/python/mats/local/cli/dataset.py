"""`mats dataset`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mats.bootstrap.local import local_system
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, NotPossible
from mats.domain.profile.assignment import covers
from mats.local.cli.output import AsJson, Namespaces, bar, note, out, plain, print_json, table_of
from mats.local.cli.spending import print_usage

if TYPE_CHECKING:
    from mats.evaluation.data.datasets import JudgedSet

Out = Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the new set.", file_okay=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing set.")]


commands = typer.Typer(help="Make and check judged data sets.", no_args_is_help=True)


@commands.command(name="from-outcomes")
def from_outcomes(
    context: typer.Context,
    to: Out,
    confirmed: Annotated[
        bool, typer.Option("--confirmed", help="Only what an operator confirmed, or two callers reported.")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Your own registry, with requests that a capability served, as callers reported.

    `mats evaluate` and `mats gate` take the set. Requests whose texts are not stored, or that had filters, are left
    out, and so is a capability on which reports contradict each other.
    """
    from mats.evaluation.data.outcomes import from_outcomes as load_outcomes  # noqa: PLC0415

    local = local_system(context.obj, create=False)
    outcomes = local.stores.outcomes
    items = {Id(f"{one['namespace']}/{one['name']}"): one for one in local.stores.snapshot() if isinstance(one, dict)}
    answers = (answer for query_id in outcomes.query_ids() if (answer := outcomes.of(query_id)))
    finish(load_outcomes(items, answers, confirmed=confirmed), to, force=force, as_json=as_json)


@commands.command(name="new")
def new(
    context: typer.Context,
    to: Out,
    queries: Annotated[int, typer.Option(help="How many queries.", min=1, max=1_000)] = 20,
    namespaces: Namespaces = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """A first set of your own registry: a query for each of some capabilities, chosen by chance.

    The writer invents the query where a language model is configured, one call for each. Else it is one of the owner's
    examples, which the set's registration then lacks, or the words of the name. `source` in queries.jsonl says which:
    `llm`, `example` or `title`. Read them, correct them, and add the requests that your users make: queries in the
    words of the registry are found more easily than theirs.
    """
    from mats.evaluation.data.drafted import draft_set  # noqa: PLC0415

    local = local_system(context.obj, create=False)
    items = {Id(f"{one['namespace']}/{one['name']}"): one for one in local.stores.snapshot() if isinstance(one, dict)}
    chosen = [id for id in items if not namespaces or any(covers(namespace, id) for namespace in namespaces)]
    if not chosen:
        raise NotPossible([Fault("--namespace" if namespaces else "", "no capability there: `mats list` shows them")])
    with bar("Drafting", min(queries, len(chosen))) as advance:
        drafted = draft_set(items, chosen, queries, local.models.writer, advance)
    finish(drafted, to, force=force, as_json=as_json)
    if not as_json:
        print_usage(local)


@commands.command()
def check(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv; each may be .gz."),
    ],
    as_json: AsJson = False,
) -> None:
    """Check each source for labels that are not in the registry or share one document."""
    report = _check(folder)
    if as_json:
        print_json(report)
    else:
        _show(report)


def finish(judged: "JudgedSet", to: Path, *, force: bool, as_json: bool) -> None:
    """Write a set, and print its counts by source, and its defects."""
    from mats.evaluation.data.datasets import write  # noqa: PLC0415

    write(judged, to, force=force)
    found = {**_check(to), "left_out": dict(judged.left_out)}
    found["suspicions"] = [*judged.suspicions, *found["suspicions"]]
    if as_json:
        print_json(found)
        return
    _show(found)
    for reason, count in judged.left_out.items():
        out.print(plain(f"{count:,} × {reason}"), soft_wrap=True)
    note(f"written to {to}")


def _check(folder: Path) -> dict[str, Any]:
    from mats.evaluation.data.datasets import defects, load  # noqa: PLC0415

    dataset = load(folder)
    found = defects(dataset)
    return {
        "dataset": dataset.name,
        "data_sha256": dataset.digest,
        "documents": len(dataset.registrations),
        "queries": len(dataset.queries),
        "refused": dict(dataset.refused),
        "sources": [asdict(one) for one in found],
        "suspicions": [f"{one.source}: {'; '.join(one.suspicions)}" for one in found if one.suspicions],
    }


def _show(found: dict[str, Any]) -> None:
    out.print(plain(f"{found['dataset']}: {found['queries']:,} queries over {found['documents']:,} capabilities"))
    numbers = ("queries", "labels", "not registered", "unanswerable", "of one document")
    table = table_of("source", *numbers, right=numbers)
    for one in found["sources"]:
        counts = (one[name] for name in ("queries", "labels", "unregistered", "unanswerable", "shared"))
        table.add_row(plain(one["source"]), *(f"{count:,}" for count in counts))
    out.print(table)
    for id, why in list(found["refused"].items())[:10]:
        out.print(plain(f"refused {id}: {why}"), soft_wrap=True)
    if len(found["refused"]) > 10:
        out.print(f"… and {len(found['refused']) - 10:,} more refused")
    for suspicion in found["suspicions"]:
        out.print(plain(f"suspicious: {suspicion}"), style="yellow", soft_wrap=True)
