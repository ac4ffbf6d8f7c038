"""`mats evaluate`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from local.cli.console import AsJson, err, exit_codes, out, print_json
from local.cli.progress import bar
from mats.settings import Settings

if TYPE_CHECKING:
    from evaluation.systems import Retriever

_RETRIEVERS = "bm25 (plain, the baseline), lexical, neural or hybrid (as shipped)"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(evaluate)


def evaluate(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Holds corpus.jsonl, queries.jsonl, qrels.tsv; or .gz.")
    ],
    retriever: Annotated[str, typer.Option(help=f"One of: {_RETRIEVERS}.")] = "hybrid",
    k: Annotated[
        int | None, typer.Option(help="Candidates per query, 1 to 25.", min=1, max=25, show_default="15")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure retrieval on a judged data set, in a registry of its own.

    Prints Match@1/3/5/15, MRR and Recall@15 with bootstrap 95 % intervals and keeps them under evaluation/results.
    """
    from evaluation.datasets import load  # noqa: PLC0415 - scipy and friends, for this command only
    from evaluation.evaluate import evaluate as measured  # noqa: PLC0415
    from evaluation.provenance import write  # noqa: PLC0415

    settings: Settings = context.obj
    with exit_codes():
        chosen = _retriever(retriever)
        dataset = load(folder)
        with bar("Indexing", len(dataset.registrations)) as indexed, bar("Asking", len(dataset.queries)) as asked:
            results = measured(dataset, chosen, replace(settings, k=k or settings.k), indexed=indexed, asked=asked)
        path = write(f"evaluate-{dataset.name}-{chosen}", results)
    if as_json:
        print_json(results)
    else:
        _show(results)
        err.print(f"kept in {path}", style="dim", soft_wrap=True)


def _retriever(name: str) -> "Retriever":
    from evaluation.systems import Retriever  # noqa: PLC0415

    try:
        return Retriever(name)
    except ValueError as error:
        raise typer.BadParameter(f"{name!r} is none of {_RETRIEVERS}", param_hint="--retriever") from error


def _show(results: dict[str, Any]) -> None:
    out.print(f"{results['dataset']}: {results['queries']:,} queries over {results['documents']:,} capabilities")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("measure")
    table.add_column(results["retriever"], justify="right", style="bold")
    table.add_column("95 %", justify="right")
    for name, value in results["metrics"].items():
        low, high = results["intervals_95"][name]
        table.add_row(name, f"{value:.3f}", f"{low:.3f} – {high:.3f}")
    out.print(table)
