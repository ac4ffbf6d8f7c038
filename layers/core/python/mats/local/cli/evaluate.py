"""`mats evaluate`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mats.domain.errors import DependencyFailed
from mats.local.cli.output import AsJson, err, exit_codes, out, plain, print_json
from mats.local.cli.progress import bar
from mats.local.cli.spending import confirm_cost
from mats.settings import Settings

if TYPE_CHECKING:
    from mats.evaluation.data.datasets import Dataset
    from mats.evaluation.systems.catalogue import Variant
    from mats.evaluation.systems.models import Models


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(evaluate)


def evaluate(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv; each may be .gz."),
    ] = None,
    variant: Annotated[
        str, typer.Option("--variant", "--retriever", help="The system; --list-variants prints all.")
    ] = "hybrid",
    k: Annotated[int | None, typer.Option(help="Candidates per query.", min=1, max=25, show_default="15")] = None,
    model: Annotated[
        str | None, typer.Option(help="Converse model id of the LLM, where the system has one; also MATS_RERANK_MODEL.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the estimated cost; without it, no model is called.")
    ] = False,
    list_variants: Annotated[bool, typer.Option("--list-variants", help="Print the systems.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a system on a judged data set, in a temporary registry.

    Prints Match@1/3/5/15, MRR and Recall@15 with bootstrap 95 % intervals and writes them to evaluation/results.
    """
    from mats.evaluation.data.datasets import load  # noqa: PLC0415
    from mats.evaluation.reporting.results import write_results  # noqa: PLC0415
    from mats.evaluation.systems.models import Models  # noqa: PLC0415

    settings: Settings = context.obj
    with exit_codes():
        models = Models(replace(settings, k=k or settings.k, rerank_model=model or settings.rerank_model))
        if list_variants:
            _list(models, as_json)
            return
        chosen, dataset = _variant(variant), load(_check_folder(folder))
        if lacking := models.lacking(chosen.needs):
            raise DependencyFailed(f"{chosen.name} {lacking}")
        results = _measure(models, chosen, dataset, yes=yes)
        path = write_results(f"evaluate-{dataset.name}-{chosen.name}", results)
    if as_json:
        print_json(results)
    else:
        _show(results)
        _warn_of_defects(dataset)
        err.print(f"results written to {path}", style="dim", soft_wrap=True)


def _measure(models: "Models", chosen: "Variant", dataset: "Dataset", *, yes: bool) -> dict[str, Any]:
    from mats.evaluation.systems.costs import estimate_cost  # noqa: PLC0415 - scipy and friends, for this command only
    from mats.evaluation.systems.score import score  # noqa: PLC0415
    from mats.evaluation.systems.workbench import Workbench  # noqa: PLC0415

    with (
        bar("Indexing", len(dataset.registrations)) as indexed,
        bar("Asking", len(dataset.queries)) as asked,
        Workbench(dataset=dataset, settings=models.settings, models=models, indexed=indexed) as bench,
    ):
        confirm_cost(
            [estimate_cost(chosen, models.settings, len(dataset.queries))] if "llm" in chosen.needs else [], yes=yes
        )
        return score(bench, chosen, progress=asked)


def _warn_of_defects(dataset: "Dataset") -> None:
    from mats.evaluation.data.defects import defects  # noqa: PLC0415

    for source in defects(dataset):
        if source.suspicions:
            err.print(plain(f"suspicious: {source.source}: {'; '.join(source.suspicions)}"), style="yellow")


def _check_folder(folder: Path | None) -> Path:
    if folder is None:
        raise typer.BadParameter("missing: name a folder with a judged data set", param_hint="DIR")
    return folder


def _variant(name: str) -> "Variant":
    from mats.evaluation.systems.catalogue import SYNONYMS, VARIANTS  # noqa: PLC0415

    try:
        return VARIANTS[SYNONYMS.get(name, name)]
    except KeyError as error:
        raise typer.BadParameter(
            f"unknown system {name!r}: use one of {', '.join(VARIANTS)}", param_hint="--variant"
        ) from error


def _list(models: Any, as_json: bool) -> None:
    """Print every system, with the reason if it cannot run."""
    from mats.evaluation.systems.catalogue import VARIANTS  # noqa: PLC0415

    rows = [
        {"name": v.name, "says": v.description, "needs": sorted(v.needs), "lacking": models.lacking(v.needs)}
        for v in VARIANTS.values()
    ]
    if as_json:
        print_json(rows)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("variant", "description", "status"):
        table.add_column(heading)
    for row in rows:
        table.add_row(row["name"], plain(row["says"]), plain(row["lacking"] or "runs"))
    out.print(table)


def _show(results: dict[str, Any]) -> None:
    out.print(f"{results['dataset']}: {results['queries']:,} queries over {results['documents']:,} capabilities")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("measure")
    table.add_column(results["variant"], justify="right", style="bold")
    table.add_column("95 %", justify="right")
    for name, value in results["metrics"].items():
        low, high = results["intervals_95"][name]
        table.add_row(name, f"{value:.3f}", f"{low:.3f} – {high:.3f}")
    out.print(table)
