"""The commands that measure: `mats evaluate` and `mats gate`.

The modules of the evaluation load scipy, so each command imports those that it needs.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from mats import bootstrap
from mats.bootstrap import open_system
from mats.domain.errors import DependencyFailed
from mats.local.cli.output import AsJson, Exit, bar, complain, err, note, out, plain, print_json, print_result, table_of
from mats.local.cli.spending import MaxCalls, MaxUsd, limit_spending
from mats.settings import Settings, variable_of

if TYPE_CHECKING:
    from mats.evaluation.data.datasets import Dataset, JudgedQuery
    from mats.evaluation.measures import Run
    from mats.evaluation.systems.base import SystemAnswer
    from mats.evaluation.systems.catalogue import Variant
    from mats.evaluation.systems.models import Models
    from mats.evaluation.systems.workbench import Workbench


def evaluate(
    context: typer.Context,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR",
            help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv; each may be .gz. Several: one by one.",
        ),
    ] = None,
    variant: Annotated[
        str, typer.Option("--variant", "--retriever", help="The system; --list-variants prints all.")
    ] = "hybrid",
    k: Annotated[int | None, typer.Option(help="Candidates per query.", min=1, max=25, show_default="15")] = None,
    model: Annotated[
        str | None, typer.Option(help="Model of the reranker, where the system has one; also MATS_RERANK_MODEL.")
    ] = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    enriched: Annotated[
        bool, typer.Option("--enriched", help="Let the writer enrich the registry first, as the paper does.")
    ] = False,
    judgements: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of judgements/SET.jsonl: measure judged queries by grades, too, so that equivalents count.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    run_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the ranking in TREC's format; `mats compare` reads it.")
    ] = None,
    misses: Annotated[
        bool,
        typer.Option("--misses", help="Show each query whose first result is not a relevant one, and what decided."),
    ] = False,
    list_variants: Annotated[bool, typer.Option("--list-variants", help="Print the systems.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a system on judged data sets, each in a temporary registry.

    Prints Match@1/3/5/15, MRR, Recall@5/15 and all@15 (all relevant ones among 15) with bootstrap 95 % intervals and
    writes them to `results` in the folder of the set. A query whose model call failed counts as missed; if every query
    failed, nothing was measured, the exit code is 1 and earlier results stay. A system that asks a language model needs
    a budget, --max-usd or --max-calls; when it is spent, the command ends with code 3, and a repeated one goes on where
    it stopped, because replies are cached.
    Recorded replies (MATS_LLM_URL=file:FOLDER) cost nothing; only the queries that they know are asked.
    """
    from mats.evaluation.data.datasets import load  # noqa: PLC0415
    from mats.evaluation.runs import write_run  # noqa: PLC0415
    from mats.evaluation.systems.models import Models  # noqa: PLC0415

    settings: Settings = context.obj
    models = Models(replace(settings, k=k or settings.k, rerank_model=model or settings.rerank_model))
    if list_variants:
        _list(models, as_json)
        return
    chosen = _variant(variant)
    if not folders:
        raise typer.BadParameter("missing: name a folder with a judged data set", param_hint="DIR")
    if run_file and len(folders) > 1:
        raise typer.BadParameter("holds the ranking of one set: name one folder", param_hint="--run-file")
    datasets = [load(folder) for folder in folders]
    if lacking := models.lacking(chosen.needs):
        raise DependencyFailed(f"{chosen.name} {lacking}")
    if enriched and (lacking := models.lacking({"llm"})):
        raise DependencyFailed(f"--enriched {lacking}")
    if chosen.has_llm or enriched:
        limit_spending(models, list(models.names.values()), max_usd, max_calls)
    for folder, dataset in zip(folders, datasets, strict=True):
        known = models.answerable(dataset) if chosen.has_llm else dataset
        if known is not dataset:
            note(f"{len(known.queries):,} of {len(dataset.queries):,} queries are recorded or judged")
        results, run = _measure(models, chosen, known, judgements, enriched=enriched, misses=misses)
        if run_file:
            write_run(run_file, run, chosen.name)
            note(f"run written to {run_file}")
        _write_and_show(results, known, folder / "results", as_json=as_json)


def _write_and_show(results: dict[str, Any], dataset: "Dataset", folder: Path, *, as_json: bool) -> None:
    """Write and print results; end the command if every query failed, without replacing earlier results."""
    from mats.evaluation.results import write_results  # noqa: PLC0415
    from mats.evaluation.systems.base import failure_text  # noqa: PLC0415

    name = f"evaluate-{results['variant']}"
    all_failed = results["failed"] == results["queries"]
    if as_json:
        print_json(results)
    else:
        _show(results, dataset)
    if all_failed and (folder / f"{name}.json").exists():
        note(f"the earlier results of {name} stay")
    else:
        try:
            note(f"results written to {write_results(name, results, folder)}")
        except OSError as error:
            note(f"results not written: {folder}: {error.strerror}")
    failures = failure_text(results["failed"], results["queries"], results["reasons"]) if results["failed"] else ""
    if all_failed:
        complain(failures)
        raise typer.Exit(Exit.REFUSED)
    if failures:
        err.print(plain(failures), style="yellow", soft_wrap=True)


def _measure(
    models: "Models", chosen: "Variant", dataset: "Dataset", judgements: Path | None, *, enriched: bool, misses: bool
) -> tuple[dict[str, Any], "Run"]:
    """The results, with `misses` also those queries, and the ranking."""
    from mats.evaluation.systems.base import run_of  # noqa: PLC0415
    from mats.evaluation.systems.score import score  # noqa: PLC0415
    from mats.evaluation.systems.workbench import Workbench  # noqa: PLC0415

    writer = models.writer if enriched else None
    with (
        bar("Indexing", len(dataset.registrations)) as indexed,
        bar("Asking", len(dataset.queries)) as asked,
        Workbench(dataset=dataset, models=models, writer=writer, indexed=indexed) as bench,
    ):
        answers = chosen.answers(bench, progress=asked)
        grades = None
        if judgements:
            known = bootstrap.recordings(judgements)
            grades = {query.id: known.grades(query.text) for query in dataset.queries}
        results = score(bench, chosen, answers, grades)
        if misses:
            results["misses"] = [
                _miss(bench, query, answers[query.id], chosen.description)
                for query in dataset.queries
                if not query.relevant.intersection(answers[query.id].ranked[:1])
            ]
        return results, run_of(answers)


def _miss(bench: "Workbench", query: "JudgedQuery", answer: "SystemAnswer", system: str) -> dict[str, Any]:
    """A query whose first result is not relevant: the relevant one that ranks best, and why another is before it.

    A `system` without signals decides by itself.
    """
    ranked, unknown = list(answer.ranked), bench.dataset.unregistered_gold
    place = {id: n for n, id in enumerate(ranked, start=1)}
    expected = min(query.relevant, key=lambda id: (place.get(id, len(ranked) + 1), id in unknown, id))
    decided = answer.failed
    if not decided and expected in unknown:
        decided = "it is not registered"
    if not decided and answer.results:
        from mats.local.preview.report import competitors  # noqa: PLC0415

        profile = bench.discover.retrieve.index.fetch([expected])[expected]
        decided = "; ".join(competitors(answer.results, profile, query.text)[0].why)
    return {
        "query_id": query.id,
        "query": query.text,
        "expected": expected,
        "got": ranked[0] if ranked else None,
        "rank": place.get(expected),
        "decided": decided or system,
    }


def _variant(name: str) -> "Variant":
    from mats.evaluation.systems.catalogue import SYNONYMS, all_variants  # noqa: PLC0415

    variants = all_variants()
    try:
        return variants[SYNONYMS.get(name, name)]
    except KeyError as error:
        known = ", ".join(variants)
        raise typer.BadParameter(f"unknown system {name!r}: use one of {known}", param_hint="--variant") from error


def _list(models: "Models", as_json: bool) -> None:
    """Print every system, with the reason if it cannot run."""
    from mats.evaluation.systems.catalogue import all_variants  # noqa: PLC0415

    rows: list[dict[str, Any]] = [
        {"name": v.name, "says": v.description, "needs": sorted(v.needs), "lacking": models.lacking(v.needs)}
        for v in all_variants().values()
    ]
    table = table_of("variant", "description", "status")
    for row in rows:
        table.add_row(row["name"], plain(row["says"]), plain(row["lacking"] or "runs"))
    print_result(rows, table, as_json=as_json)


def _show(results: dict[str, Any], dataset: "Dataset") -> None:
    from mats.evaluation.data.datasets import defects  # noqa: PLC0415

    out.print(f"{results['dataset']}: {results['queries']:,} queries over {results['documents']:,} capabilities")
    table = table_of("measure", results["variant"], "95 %", right=(results["variant"], "95 %"))
    for name, value in results["metrics"].items():
        low, high = results["intervals_95"][name] or (None, None)
        interval = "–" if low is None else f"{low:.3f} – {high:.3f}"
        table.add_row(name, Text("–" if value is None else f"{value:.3f}", style="bold"), interval)
    out.print(table)
    for miss in results.get("misses", ()):
        place = f"at place {miss['rank']}" if miss["rank"] else "not found"
        out.print(plain(f"miss {miss['query_id']}: {miss['query']}", "bold"), soft_wrap=True)
        out.print(plain(f"  expected {miss['expected']}: {place}"), soft_wrap=True)
        out.print(plain(f"  got {miss['got'] or 'nothing'}: {miss['decided']}"), soft_wrap=True)
    if graded := results.get("graded", {}).get("queries"):
        _show_graded(results["graded"], graded)
    for source in defects(dataset):
        if source.suspicions:
            err.print(plain(f"suspicious: {source.source}: {'; '.join(source.suspicions)}"), style="yellow")


def _show_graded(graded: dict[str, Any], queries: int) -> None:
    out.print(f"by judgements, {queries:,} queries; {graded['unjudged']:.1%} of the first five results are not judged")
    table = table_of("measure", "value", "95 %", right=("value", "95 %"))
    names = {"label_first": "first has the label", "grade_first": "first is graded 70 or more", "ndcg@5": "nDCG@5"}
    for key, name in names.items():
        value = graded[key]
        table.add_row(name, Text(f"{value['mean']:.3f}", style="bold"), f"{value['low']:.3f} – {value['high']:.3f}")
    out.print(table)


def compare(
    before: Annotated[Path, typer.Argument(metavar="A.RUN", help="TREC run file.", exists=True, dir_okay=False)],
    after: Annotated[Path, typer.Argument(metavar="B.RUN", help="TREC run file.", exists=True, dir_okay=False)],
    data: Annotated[Path, typer.Option(metavar="DIR", help="The judged data set.", exists=True, file_okay=False)],
    as_json: AsJson = False,
) -> None:
    """Compare two TREC run files on the queries that both answer: every measure, and a paired test of first results."""
    from mats.evaluation.data.datasets import load  # noqa: PLC0415
    from mats.evaluation.runs import compare_runs, read_run  # noqa: PLC0415

    results = compare_runs(read_run(before), read_run(after), load(data))
    if as_json:
        print_json(results)
        return
    out.print(f"{results['dataset']}: {results['queries']:,} queries that both files answer")
    table = table_of("measure", before.name, after.name, "difference", "95 %")
    for name, row in results["measures"].items():
        low, high = row["interval_95"]
        table.add_row(
            name,
            f"{row['before']:.3f}",
            f"{row['after']:.3f}",
            f"{row['difference']:+.3f}",
            f"{low:+.3f} – {high:+.3f}",
        )
    out.print(table)
    test = results["first_results"]
    out.print(f"first results: {test['gained']} gained, {test['lost']} lost, p = {test['p']:.3g} (exact McNemar)")


def calibrate(context: typer.Context, as_json: AsJson = False) -> None:
    """Measure how the encoder places the registry's own requests, and print the setting that makes its scores count.

    Needs no labels, but 200 capabilities with an example request or a description. An encoder that places them as the
    default one does keeps its constants. Set what is printed for the service, too: in AWS as the context key
    `calibration`.
    """
    from mats.evaluation.calibration import FEWEST, fit_cosines, measure_cosines, own_requests  # noqa: PLC0415  # fmt: skip

    system = open_system(context.obj, create=False)
    encoder = system.models.encoder
    if encoder is None:
        raise DependencyFailed(f"there is nothing to calibrate: {system.models.without_encoder}")
    ids = list(system.stores.profiles.ids())
    pairs = own_requests(system.stores.index.fetch(ids).values())
    if len(pairs) < FEWEST:
        complain(f"{len(pairs)} capabilities have a request, {FEWEST} are needed: register more, or use judged queries")
        raise typer.Exit(Exit.REFUSED)
    measured = measure_cosines(encoder, pairs)
    reference = bootstrap.reference_calibration(system.stores.index.name)
    try:
        scale = fit_cosines(reference.scale, reference.cosines, measured)
    except ValueError as error:
        raise DependencyFailed(f"{encoder.name} cannot be calibrated: {error}; use another encoder") from error
    value = f"{bootstrap.calibrated_name(encoder.name)}:{measured.requests}:{scale.lo:g}:{scale.hi:g}"
    if as_json:
        print_json({"calibration": value, "known": measured.known, "noise": measured.noise})
        return
    note(f"{measured.requests} requests: cosine {measured.known:.2f} with their own, {measured.noise:.2f} with others")
    out.print(plain(f"{variable_of('calibration')}={value}"), soft_wrap=True)


def gate(
    context: typer.Context,
    baseline: Annotated[Path, typer.Option(help="File of the baseline; --update writes it.")],
    data: Annotated[
        Path | None, typer.Option(help="Folder of judged data sets, for baselines of more than the examples.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Measure, and write the baseline instead of comparing with it.")
    ] = False,
    variant: Annotated[str, typer.Option(help="The system, as in `mats evaluate`.")] = "hybrid",
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME", help="A set to measure; default: the baseline's, with --update `examples`."
        ),
    ] = None,
) -> None:
    """Fail if a measure of retrieval is below its interval in the baseline.

    A baseline holds the measures of one or more sets. The set `examples` is the sample registry with its golden
    queries. Judged queries of your own make a baseline of your own registry.
    """
    from mats.evaluation.gate import dataset_of, drops, measure_set, read_baseline  # noqa: PLC0415
    from mats.evaluation.systems.models import Models  # noqa: PLC0415

    models = Models(context.obj)
    chosen = _variant(variant)
    if chosen.has_llm and (lacking := models.lacking(chosen.needs)):
        raise DependencyFailed(f"{chosen.name} {lacking}")
    if chosen.has_llm:
        limit_spending(models, [models.names["reranker"]], max_usd, max_calls)
    before = {} if update else read_baseline(baseline, chosen.name)
    now: dict[str, Any] = {}
    dropped = []
    names = sets or (["examples"] if update else list(before))
    if not update and (unknown := [name for name in names if name not in before]):
        raise typer.BadParameter(f"not in the baseline, which has {', '.join(before)}: {', '.join(unknown)}")
    for name in names:
        dataset = dataset_of(name, data)
        with bar(f"Indexing {name}", len(dataset.registrations)) as indexed, bar("Asking", None) as asked:
            now[name] = measure_set(dataset, models, chosen, indexed=indexed, asked=asked)
        summary = ", ".join(f"{measure} {100 * m['mean']:.1f}" for measure, m in now[name]["metrics"].items())
        out.print(f"{name}: {summary}")
        dropped += [] if update else list(drops(name, before[name], now[name]))
    if update:
        baseline.write_text(json.dumps({"sets": now}, indent=1) + "\n", encoding="utf-8")
        note(f"baseline written to {baseline}")
    for drop in dropped:
        complain(drop)
    if dropped:
        raise typer.Exit(Exit.REFUSED)
