"""The commands that measure, and `mats dataset`, which makes judged sets.

Most modules of the evaluation load scipy: each command imports those that it needs.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from mats.bootstrap.local import local_system
from mats.bootstrap.policies import NAMES as POLICIES
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, Fault, NotPossible
from mats.evaluation.data.datasets import EXAMPLES, Dataset, JudgedQuery, JudgedSet, defects, load, load_judged, write
from mats.evaluation.data.outcomes import from_outcomes as load_outcomes
from mats.evaluation.systems.models import Models
from mats.local.cli import output as ui

if TYPE_CHECKING:
    from mats.evaluation.systems.base import SystemAnswer
    from mats.evaluation.systems.catalogue import Variant
    from mats.evaluation.systems.workbench import Workbench


def evaluate(
    context: typer.Context,
    folders: Annotated[
        list[Path] | None,
        ui.argument(
            "Folder with corpus.jsonl, queries.jsonl and qrels.tsv; each may be .gz. Several: one by one.",
            metavar="DIR",
        ),
    ] = None,
    variant: Annotated[str, ui.option("The system; --list-variants prints all.")] = "hybrid",
    max_usd: ui.MaxUsd = None,
    max_calls: ui.MaxCalls = None,
    without: Annotated[
        list[str] | None,
        ui.option(f"Leave out this policy of {', '.join(POLICIES)}; may be repeated.", "--without", metavar="NAME"),
    ] = None,
    misses: Annotated[
        bool, ui.option("Show each query whose first result is not a relevant one, and what decided.", "--misses")
    ] = False,
    list_variants: Annotated[bool, ui.option("Print the systems.", "--list-variants")] = False,
) -> None:
    """Measure a system on judged data sets, each in a temporary registry.

    Prints the measures with 95 % intervals and how many verdicts are wrong, and writes them to `results` in the folder
    of the set. A query whose model call failed counts as missed. A system that asks a language model needs a budget,
    --max-usd or --max-calls; when it is spent, the exit code is 3. Run the command again to go on: replies are cached.
    """
    models = Models(context.obj)
    if list_variants:
        _list(models)
        return
    chosen = _variant(variant)
    if not folders:
        raise typer.BadParameter("missing: name a folder with a judged data set", param_hint="DIR")
    if unknown := {*(without or ())} - {*POLICIES}:
        message = f"unknown policy {', '.join(sorted(unknown))}: use {', '.join(POLICIES)}"
        raise typer.BadParameter(message, param_hint="--without")
    datasets = [load_judged(folder) for folder in folders]
    if lacking := models.lacking(chosen.needs):
        raise DependencyFailed(f"{chosen.name} {lacking}")
    if chosen.has_llm:
        ui.limit_spending(models, [models.names["reranker"]], max_usd, max_calls)
    for folder, dataset in zip(folders, datasets, strict=True):
        results = _measure(models, chosen, dataset, without or (), misses=misses)
        _write_and_show(results, dataset, folder / "results")


def _write_and_show(results: dict[str, Any], dataset: Dataset, folder: Path) -> None:
    """Write and print results; end the command if every query failed, without replacing earlier results."""
    from mats.evaluation.results import write_results  # noqa: PLC0415
    from mats.evaluation.systems.base import failure_text  # noqa: PLC0415

    name = "-without-".join([f"evaluate-{results['variant']}", *results.get("without", ())])
    all_failed = 0 < results["queries"] == results["failed"]
    ui.show(results, _lines(results), _not_scored(sorted(dataset.unregistered_gold), dataset.unasked))
    for source in () if ui.is_json() else defects(dataset):
        if source.suspicions:
            ui.err.print(ui.plain(f"suspicious: {source.source}: {'; '.join(source.suspicions)}"), style="yellow")
    if all_failed and (folder / f"{name}.json").exists():
        ui.note(f"the earlier results of {name} stay")
    else:
        try:
            ui.note(f"results written to {write_results(name, results, folder)}")
        except OSError as error:
            ui.note(f"results not written: {folder}: {error.strerror}")
    failures = failure_text(results["failed"], results["queries"], results["reasons"]) if results["failed"] else ""
    if all_failed:
        ui.complain(failures)
        raise typer.Exit(ui.Exit.REFUSED)
    if failures:
        ui.err.print(ui.plain(failures), style="yellow", soft_wrap=True)


def _measure(
    models: Models, chosen: "Variant", dataset: Dataset, without: Sequence[str], *, misses: bool
) -> dict[str, Any]:
    """The results, with `misses` also those queries."""
    from mats.evaluation.systems.score import score  # noqa: PLC0415
    from mats.evaluation.systems.workbench import Workbench  # noqa: PLC0415

    with (
        ui.bar("Indexing", len(dataset.registrations)) as indexed,
        ui.bar("Asking", len(dataset.queries)) as asked,
        Workbench(dataset=dataset, models=models, indexed=indexed, without=without) as bench,
    ):
        answers = chosen.answers(bench, progress=asked)
        absent = chosen.answers(bench, dataset.absent)
        results = {**score(bench, chosen, answers, absent), **({"without": [*without]} if without else {})}
        results |= {"unasked": [*dataset.unasked]} if dataset.unasked else {}
        if misses:
            results["misses"] = [
                _miss(bench, query, answers[query.id], chosen.description)
                for query in dataset.queries
                if not query.relevant.intersection(answers[query.id].ranked[:1])
            ]
        return results


def _miss(bench: "Workbench", query: JudgedQuery, answer: "SystemAnswer", system: str) -> dict[str, Any]:
    """A query whose first result is not relevant: the relevant one that ranks best, and why another is before it.

    A `system` without signals decides by itself.
    """
    ranked, unknown = list(answer.ranked), bench.dataset.unregistered_gold
    place = {id: n for n, id in enumerate(ranked, start=1)}
    expected = min(query.relevant, key=lambda id: (place.get(id, len(ranked) + 1), id in unknown, id))
    decided = answer.failed
    if not decided and expected in unknown:
        decided = f"{expected} is not registered"
    if not decided and answer.results:
        from mats.local.preview.report import reasons  # noqa: PLC0415

        own = next((result for result in answer.results if result.id == expected), None)
        decided = "; ".join(reasons(answer.results[0], own))
    return {
        "query_id": query.id,
        "query": query.text,
        "expected": expected,
        "got": ranked[0] if ranked else None,
        "rank": place.get(expected),
        "decided": decided or system,
    }


def _variant(name: str) -> "Variant":
    from mats.evaluation.systems.catalogue import all_variants  # noqa: PLC0415

    variants = all_variants()
    if name not in variants:
        known = ", ".join(variants)
        raise typer.BadParameter(f"unknown system {name!r}: use one of {known}", param_hint="--variant")
    return variants[name]


def _list(models: Models) -> None:
    from mats.evaluation.systems.catalogue import all_variants  # noqa: PLC0415

    rows: list[dict[str, Any]] = [
        {"name": v.name, "says": v.description, "needs": sorted(v.needs), "lacking": models.lacking(v.needs)}
        for v in all_variants().values()
    ]
    table = ui.table_of("variant", "description", "status")
    for row in rows:
        table.add_row(row["name"], ui.plain(row["says"]), ui.plain(row["lacking"] or "runs"))
    ui.show(rows, table)


def _lines(results: dict[str, Any]) -> ui.Lines:
    yield _size(results)
    table = ui.table_of("measure", results["variant"], "95 %", right=(results["variant"], "95 %"))
    for name, value in results["metrics"].items():
        low, high = results["intervals_95"][name] or (None, None)
        interval = "–" if low is None else f"{low:.3f} – {high:.3f}"
        table.add_row(name, Text("–" if value is None else f"{value:.3f}", style="bold"), interval)
    yield table
    if said := results["verdicts"]:
        queries, absent = results["queries"], said["absent"]
        yield f"false match: {said['false_match']} of {queries + absent}; false none: {said['false_none']} of {queries}"
        if absent:
            yield f"none where nothing serves: {said['absent_none']} of {absent}"
    for miss in results.get("misses", ()):
        place = f"at place {miss['rank']}" if miss["rank"] else "not found"
        yield ui.plain(f"miss {miss['query_id']}: {miss['query']}", "bold")
        yield f"  expected {miss['expected']}: {place}"
        yield f"  got {miss['got'] or 'nothing'}: {miss['decided']}"


def _size(found: dict[str, Any]) -> str:
    queries = ui.count_of(found["queries"], "query", "queries")
    return f"{found['dataset']}: {queries} over {ui.count_of(found['documents'], 'capability', 'capabilities')}"


def gate(
    context: typer.Context,
    baseline: Annotated[Path, ui.option("File of the baseline; --update writes it.")],
    data: Annotated[
        Path | None, ui.option("Folder of judged data sets, for baselines of more than the examples.")
    ] = None,
    update: Annotated[bool, ui.option("Show what has changed since the baseline, and replace it.", "--update")] = False,
    sets: Annotated[
        list[str] | None,
        ui.option("A set to measure; default: the baseline's, or `examples`.", "--set", metavar="NAME"),
    ] = None,
) -> None:
    """Fail if more queries are lost than gained since the baseline: significantly, or more than one in a hundred.

    No language model is asked. Each set is compared query by query: whether a relevant capability is first, and among
    15; whether there is no false match (the first is wrong) and no missed match (the first is right, the verdict weak
    or none), each as a share of all queries. The set `examples` is the sample registry with its golden queries. Judged
    queries of your own make a baseline of your own registry.
    """
    from mats.evaluation.gate import compare as checks_of  # noqa: PLC0415
    from mats.evaluation.gate import dataset_of, measure_set, read_baseline, write_baseline  # noqa: PLC0415

    before = {} if update and not baseline.exists() else read_baseline(baseline)
    names = sets or list(before) or [EXAMPLES.name]
    if not update and (unknown := [name for name in names if name not in before]):
        raise typer.BadParameter(f"not in the baseline, which has {', '.join(before)}: {', '.join(unknown)}")
    now, losses = dict(before), []
    table = ui.table_of("set", "", *(counts := ("baseline", "now", "gained", "lost")), right=counts)
    for name in names:
        dataset = dataset_of(name, data)
        with ui.bar(f"Indexing {name}", len(dataset.registrations)) as indexed, ui.bar("Asking", None) as asked:
            now[name] = measure_set(dataset, Models(context.obj), indexed=indexed, asked=asked)
        old = before.get(name, now[name])
        if update and len(old.places) != len(now[name].places):
            ui.note(f"{name} has another number of queries than in the old baseline: it is not compared")
            old = now[name]
        elif update and old.digest != now[name].digest:
            ui.note(f"{name} has changed: its queries are compared by their order with those of the old baseline")
            old = replace(old, digest=now[name].digest)
        for check in checks_of(dataset, old, now[name]):
            shares = [f"{100 * share:.1f}" for share in (check.before, check.now)]
            cells = (*shares, f"+{check.test.gained}", f"-{check.test.lost}")
            table.add_row(name, check.name, *(("", shares[1]) if old is now[name] else cells))
            if check.is_loss:
                change = f"from {shares[0]} to {shares[1]} % (gained {check.test.gained}, lost {check.test.lost})"
                losses.append(f"{name}: {check.name} fell {change}: see `mats evaluate --misses`")
    ui.out.print(table)
    if update:
        write_baseline(baseline, now)
        ui.note(f"baseline written to {baseline}")
    for loss in () if update else losses:
        ui.complain(loss)
    if not update:
        ui.note("fails" if losses else "passes: no set has lost more than it gained")
    if losses and not update:
        raise typer.Exit(ui.Exit.REFUSED)


Out = Annotated[Path, ui.argument("Folder of the new set.", metavar="OUT", file_okay=False)]
Force = Annotated[bool, ui.option("Replace an existing set.", "--force")]
commands = typer.Typer(help="Make and check judged data sets.", no_args_is_help=True)


@commands.command(name="from-outcomes")
@ui.with_json
def from_outcomes(
    context: typer.Context,
    to: Out,
    confirmed: Annotated[
        bool, ui.option("Only what an operator confirmed, or two callers reported.", "--confirmed")
    ] = False,
    force: Force = False,
) -> None:
    """Write your registry and the requests that a capability served, as callers reported, as a judged data set.

    `mats evaluate` and `mats gate` take the set. Requests whose texts are not stored, or that had filters, are left
    out, and so is a capability on which reports contradict each other.
    """
    local = local_system(context.obj, create=False)
    outcomes = local.stores.outcomes
    items = {Id(f"{one['namespace']}/{one['name']}"): one for one in local.stores.snapshot() if isinstance(one, dict)}
    answers = (answer for query_id in outcomes.query_ids() if (answer := outcomes.of(query_id)))
    finish(load_outcomes(items, answers, confirmed=confirmed), to, force=force)


@commands.command()
@ui.with_json
def check(
    folder: Annotated[
        Path, ui.argument("Folder with corpus.jsonl, queries.jsonl and qrels.tsv; each may be .gz.", metavar="DIR")
    ],
) -> None:
    """Check each source for labels that are not in the registry or share one document.

    Exits with 1 if queries are judged that are not in queries.jsonl.
    """
    report = _check(folder)
    ui.show(report, _set_lines(report))
    if report["unasked"]:
        raise typer.Exit(ui.Exit.REFUSED)


def finish(judged: JudgedSet, to: Path, *, force: bool) -> None:
    """Write a set, and print its counts by source, and its defects."""
    try:
        write(judged, to, force=force)
    except OSError as error:
        raise NotPossible([Fault("", f"{to} cannot be written: {error.strerror}")]) from error
    found = {**_check(to), "left_out": dict(judged.left_out)}
    found["suspicions"] = [*judged.suspicions, *found["suspicions"]]
    ui.show(found, _set_lines(found), (f"{count:,} × {reason}" for reason, count in judged.left_out.items()))
    if not ui.is_json():
        ui.note(f"written to {to}")


def _check(folder: Path) -> dict[str, Any]:
    dataset = load(folder)
    found = defects(dataset)
    return {
        "dataset": dataset.name,
        "data_sha256": dataset.digest,
        "documents": len(dataset.registrations),
        "queries": len(dataset.queries),
        "refused": dict(dataset.refused),
        "sources": [asdict(one) for one in found],
        "unregistered": sorted(dataset.unregistered_gold),
        "unasked": list(dataset.unasked),
        "suspicions": [f"{one.source}: {'; '.join(one.suspicions)}" for one in found if one.suspicions],
    }


def _set_lines(found: dict[str, Any]) -> ui.Lines:
    yield _size(found)
    numbers = ("queries", "labels", "not registered", "unanswerable", "of one document")
    table = ui.table_of("source", *numbers, right=numbers)
    for one in found["sources"]:
        counts = (one[name] for name in ("queries", "labels", "unregistered", "unanswerable", "shared"))
        table.add_row(ui.plain(one["source"]), *(f"{count:,}" for count in counts))
    yield table
    yield from (f"refused {id}: {why}" for id, why in list(found["refused"].items())[:10])
    if len(found["refused"]) > 10:
        yield f"… and {len(found['refused']) - 10:,} more refused"
    yield from _not_scored(found["unregistered"], found["unasked"])
    yield from (ui.plain(f"suspicious: {suspicion}", "yellow") for suspicion in found["suspicions"])


def _not_scored(unregistered: Sequence[str], unasked: Sequence[str]) -> ui.Lines:
    for said, missing in (("not registered", unregistered), ("judged, but not in queries.jsonl", unasked)):
        if missing:
            more = f" and {len(missing) - 10:,} more" if len(missing) > 10 else ""
            yield ui.plain(f"{said}: {', '.join(missing[:10])}{more}")
