"""Enrichment with ever less of the owner's text: whole descriptions, first sentences, names."""

from collections.abc import Callable, Iterator, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.context import ExperimentContext
from experiments.experiment import Experiment, Panel
from experiments.measures import paired, ranking, written
from experiments.panels import pool
from experiments.report.cells import FigureForm, Sets, TableForm, amount, change, share
from experiments.report.results import not_run_reason
from experiments.report.style import BLUE, INK, VERMILION, legend_below, panels
from experiments.studies.enrichment import ARMS, SIZE
from experiments.studies.main import OURS
from mats.domain.capability.registration import Registration
from mats.domain.text.words import first_sentence
from mats.evaluation.results import Json

_HINT = 150  # Characters of a first sentence, as in the paper


def _only(describe: Callable[[str], str]) -> Callable[[Registration], Registration]:
    """A registration of name and shortened description alone, as in the paper's pool."""
    return lambda r: Registration(namespace=r.namespace, name=r.name, kind=r.kind, description=describe(r.description))


LEVELS: Mapping[str, Callable[[Registration], Registration]] = {
    "full": _only(str),
    "hint": _only(lambda text: first_sentence(text, _HINT)),
    "name-only": _only(lambda _: ""),
}


def _panels(context: ExperimentContext) -> Iterator[Panel]:
    return (pool(context.dataset(context.large_set), SIZE, level, change) for level, change in LEVELS.items())


def _sparsity(found: Sets, paper: Json) -> Figure:
    """Match@1 and Recall@15 of the pipeline, or of the first stage where no model was there; beside the paper's."""
    ran = not all(not_run_reason(one["systems"]["enriched"]) for one in found.values())
    labels = ("raw", "enriched") if ran else (f"{OURS}, raw", f"{OURS}, enriched")
    figure, grid = panels(2, height=4.9, sharey=True)
    for panel, name in zip(grid, ("match@1", "recall@15"), strict=True):
        for side, label in enumerate(labels):
            _bars(panel, found, label, name, side)
            known = [level[("raw", "enriched")[side]][name] for level in paper["tables"]["tab:sparsity"].values()]
            at = [place + (-0.2, 0.2)[side] for place in range(len(known))]
            panel.plot(at, [100 * share for share in known], "D", color=INK, label="the paper's" if side else None)
        panel.set(title=name.capitalize(), xlabel="the owner's text", ylim=(0, 103))
        panel.set_xticks(range(len(found)), list(found))
        panel.grid(visible=True, axis="y")
    grid[0].set_ylabel("% (95 % interval)")
    legend_below(figure, grid[0], columns=3)
    return figure


def _bars(panel: Axes, found: Sets, label: str, name: str, side: int) -> None:
    cells = [one["systems"][label] for one in found.values()]
    if all(map(not_run_reason, cells)):
        panel.plot([], [], " ", label=f"{label}: not run")
        return
    shares = [cell["metrics"][name] for cell in cells]
    heights = [100 * each["mean"] for each in shares]
    errors = [[100 * abs(each["mean"] - each[end]) for each in shares] for end in ("low", "high")]
    colour, hatch = ((BLUE, ""), (VERMILION, "//"))[side]
    at = [place + (-0.2, 0.2)[side] for place in range(len(shares))]
    panel.bar(at, heights, 0.38, yerr=errors, capsize=3, color=colour, hatch=hatch, edgecolor=INK, label=label)


EXPERIMENT = Experiment(
    name="sparsity",
    place=42,
    title="Enrichment of sparse registrations",
    about=f"A seeded pool of {SIZE:,} capabilities with the queries for them. Hint is the first sentence, at most "
    f"{_HINT} characters. In per cent, with bootstrap 95 % intervals.",
    panels=_panels,
    arms=ARMS,
    measures=(ranking, paired, written),
    tables=(
        TableForm(
            id="sparsity-levels", caption="Raw and enriched by the owner's text, %", paper="tab:sparsity",
            columns={
                "match@1": share("match@1"),
                "recall@15": share("recall@15"),
                "gained / lost": change,
                "empty summaries": amount("empty_summaries"),
            },
            note="`raw` and `enriched` are `pipeline-bm25`, as in the paper.",
        ),
    ),
    figures=(
        FigureForm(
            id="sparsity", draw=_sparsity,
            caption="Raw and enriched with ever less of the owner's text; diamonds are the paper's.",
            alt="Match@1 and Recall@15, raw and enriched, with full descriptions, first sentences and names only.",
        ),
    ),
)  # fmt: skip
