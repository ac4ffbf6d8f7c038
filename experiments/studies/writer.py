"""What written descriptions of sparse registrations gain for their own queries, and cost all others."""

from collections.abc import Iterator
from typing import Any

from experiments.context import ExperimentContext
from experiments.experiment import ALL, Asked, Experiment, Panel, arm
from experiments.measures import paired, ranking
from experiments.panels import of_queries
from experiments.recordings import Recordings
from experiments.report.cells import TableForm, amount, change, share
from experiments.studies.language_model import TOGETHER
from experiments.studies.main import OURS

_SETS = ("tools", "sparse-tools", "mcp-tools-closed", "agents", "models")


def _panels(context: ExperimentContext) -> Iterator[Panel]:
    """Of each set and together: the queries for what was written, and all others."""
    ids = frozenset(Recordings(context.data / "recorded").written_ids)
    parts: dict[str, list[Panel]] = {"written": [], "others": []}
    for dataset in (context.dataset(name) for name in context.sets if name in _SETS):
        written = {query.id for query in dataset.queries if query.relevant & ids}
        others = {query.id for query in dataset.queries} - written
        for part, asked in (("written", written), ("others", others)):
            if written and asked:
                panel = of_queries(f"{dataset.name}: {part}", dataset, asked)
                parts[part].append(Panel(panel.label, panel.parts, known={"written": ids}))
                yield parts[part][-1]
    for part, panels in parts.items():
        if panels:
            whole = tuple(each for panel in panels for each in panel.parts)
            yield Panel(f"{TOGETHER}: {part}", whole, known={"written": ids})


def wrong_places(asked: Asked) -> dict[str, Any]:
    """Places among the first fifteen that written entries take from queries for which they are no gold."""
    ids = asked.panel.known["written"]
    return {
        "wrong_places": sum(
            id in ids and id not in query.relevant
            for query in asked.dataset.queries
            for id in asked.answers[query.id].ranked[:15]
        )
    }


EXPERIMENT = Experiment(
    name="writer",
    place=8,
    title="Written descriptions among raw ones",
    about="The first stage, without a reranker, over registries in which a language model described what has a "
    "recorded description, all sparse, and the rest is raw.",
    panels=_panels,
    arms=(arm(OURS), arm(OURS, label=f"{OURS}, written", writes=ALL, before=OURS)),
    measures=(ranking, paired, wrong_places),
    tables=(
        TableForm(
            id="writer-shares", caption="Queries for written and for other capabilities, %",
            columns={
                "match@1": share("match@1"), "match@15": share("match@15"), "gained / lost": change,
                "wrong places": amount("wrong_places"),
            },
            note="Wrong places: those among the first fifteen of queries for which a written entry is no gold.",
        ),
    ),
)  # fmt: skip
