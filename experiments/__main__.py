"""`python -m experiments`: run experiments, render the report, convert published data sets."""

import os
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from experiments.ablate.run import ablate as measure_policies
from experiments.ablate.sets import PROBES
from experiments.catalogue import EXPERIMENTS
from experiments.context import ExperimentContext
from experiments.data.appworld import appworld as load_appworld
from experiments.data.sets import sets_in
from experiments.data.toolret import agents
from experiments.data.toolret import toolret as load_toolret
from experiments.fresh import write_results
from experiments.recordings import Recordings
from experiments.report import readme as pages
from experiments.report.policies import HEAD, rows_of
from experiments.report.render import build_report, write_report
from mats.bootstrap.policies import NAMES as POLICIES
from mats.evaluation.results import RESULTS
from mats.evaluation.systems.models import Models
from mats.local.cli import output as ui
from mats.local.cli.evaluation import Force, Out, finish
from mats.local.cli.output import ExitCodes, MaxCalls, MaxUsd, limit_spending, note, out, plain, with_json
from mats.settings import Settings

app = typer.Typer(
    name="experiments",
    cls=ExitCodes,
    help=__doc__,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
dataset = typer.Typer(help="Convert published data to judged sets.", no_args_is_help=True)
app.add_typer(dataset, name="dataset")

Source = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="Folder with a local copy of the published files.", exists=True)
]
View = Literal["tools", "agents"]
Results = Annotated[
    Path | None,
    typer.Option(
        "--results", metavar="DIR", help="Folder of the results; default: `results` beside the data.", file_okay=False
    ),
]


@app.command()
def run(
    data: Annotated[Path, typer.Option(help="Folder of judged data sets.", exists=True, file_okay=False)],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help=f"Of {', '.join(EXPERIMENTS)}; default: all.")
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME", help="Only this data set; may be given several times.")
    ] = None,
    enriched: Annotated[
        bool, typer.Option("--enriched", help="Pipelines search registries that the writer enriched, as in the paper.")
    ] = False,
    model_ids: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="ID", help="For `models` and `rerankers`; several times for several."),
    ] = None,
    encoders: Annotated[
        list[str] | None, typer.Option("--encoder", metavar="ID", help="For `retrievers`; several times for several.")
    ] = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    results_folder: Results = None,
) -> None:
    """Run experiments over judged data sets and write their results.

    A system whose model is not configured is reported as not run; if one is, a budget is needed. `report` renders
    tables and figures.
    """
    if unknown := set(names or ()) - EXPERIMENTS.keys():
        raise typer.BadParameter(f"unknown experiment {', '.join(sorted(unknown))}: use {', '.join(EXPERIMENTS)}")
    recordings = _recordings(data, settings := Settings.from_env(os.environ))
    models = Models(settings, recorded=recordings.ask if recordings else None)
    if recordings is None and not models.lacking({"llm"}):
        limit_spending(models, [*models.names.values(), *(model_ids or ())], max_usd, max_calls)
    context = ExperimentContext(
        data=data,
        models=models,
        recordings=recordings,
        sets=tuple(sets or sets_in(data)),
        model_ids=tuple(model_ids or ()),
        encoders=tuple(encoders or ()),
        enriched=enriched,
    )
    with context as shared:
        for name in names or EXPERIMENTS:
            began = time.monotonic()
            results = EXPERIMENTS[name].run(shared)
            seconds = round(time.monotonic() - began, 1)
            used = {"used": shared.to_json(), "seconds": seconds}
            path = write_results(f"experiment-{name}", {**results, **used}, results_folder or data / "results")
            note(f"{name}: results written to {path}")


@app.command()
def ablate(
    data: Annotated[Path, typer.Option(help="Folder of judged data sets.", exists=True, file_okay=False)],
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME", help=f"Only this one of {', '.join(PROBES)}; may be given several times."
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME", help="Only this policy; may be given several times."),
    ] = None,
    results_folder: Results = None,
) -> None:
    """Measure every policy of an answer: with it and without it, over the same requests, without a language model.

    Prints a row for each and writes all comparisons, unless only some are asked for. Fails if a policy gains nothing on
    its own requests, or loses where it must do nothing.
    """
    for option, asked, known in (("--set", sets, [*PROBES]), ("--policy", policies, [*POLICIES])):
        if unknown := {*(asked or ())} - {*known}:
            raise typer.BadParameter(
                f"unknown: {', '.join(sorted(unknown))}; use {', '.join(known)}", param_hint=option
            )
    began = time.monotonic()
    results = measure_policies(data, Settings.from_env({}), sets or list(PROBES), policies or POLICIES)
    results["seconds"] = round(time.monotonic() - began, 1)
    listing = ui.table_of(*HEAD)
    for name, one in results["policies"].items():
        for row in rows_of(name, one):
            listing.add_row(*map(plain, row))
    out.print(listing)
    if not (sets or policies):
        path = write_results("experiment-ablate", results, results_folder or data / "results")
        note(f"results written to {path}")
    failures = [failure for one in results["policies"].values() for failure in one["failures"]]
    for failure in failures:
        ui.complain(failure)
    if failures:
        raise typer.Exit(1)


def _recordings(data: Path, settings: Settings) -> Recordings | None:
    """The recorded replies of the data folder, where no language model is configured."""
    recorded = data / "recorded"
    if settings.has_llm or not recorded.is_dir():
        return None
    note(f"no language model is configured: replies come from {recorded}")
    return Recordings(recorded)


@app.command()
def report(
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the report.", file_okay=False)] = Path(
        "experiments/results/report"
    ),
    results: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the results.", file_okay=False)] = RESULTS,
) -> None:
    """Render the results of experiments as Markdown and figures, without measuring.

    Writes report.md, and every figure as SVG. Lists the experiments that have no results.
    """
    rendered = build_report(results)
    path = write_report(rendered, to)
    for line in rendered.intro[1:]:
        note(line)
    out.print(plain(f"{path} ({len(rendered.sections)} sections, {len(rendered.figures)} figures)"), soft_wrap=True)


@app.command()
def readme() -> None:
    """Render the parts of README and docs that come from experiments/results."""
    pages.main()


@dataset.command()
@with_json
def toolret(
    source: Source,
    to: Out,
    view: Annotated[View, typer.Option(help="Tools, or agents that group them by provider.")] = "tools",
    registry: Annotated[
        Literal["gold", "all"], typer.Option(help="Gold tools only, as in the paper, or all published tools.")
    ] = "gold",
    force: Force = False,
) -> None:
    """ToolRet, from copies of mangopy/ToolRet-Queries and mangopy/ToolRet-Tools: JSON lines, JSON or parquet."""
    judged = load_toolret(source, whole=registry == "all")
    finish(agents(judged) if view == "agents" else judged, to, force=force)


@dataset.command()
@with_json
def appworld(
    source: Source,
    to: Out,
    view: Annotated[View, typer.Option(help="APIs as tools, or apps as agents.")] = "tools",
    force: Force = False,
) -> None:
    """AppWorld, from a copy of its data folder: api_docs, tasks, datasets."""
    finish(load_appworld(source, agents=view == "agents"), to, force=force)


if __name__ == "__main__":
    app()
