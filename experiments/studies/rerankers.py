"""Other language models as the reranker of one pipeline."""

from collections.abc import Iterator

from experiments.context import ExperimentContext
from experiments.experiment import Experiment, Panel
from experiments.measures import cost, ranking
from experiments.panels import pool, sets
from experiments.report.cells import TableForm, median, share
from experiments.studies.models import by_model

_SAMPLE = 500  # Capabilities


def _panels(context: ExperimentContext) -> Iterator[Panel]:
    yield pool(context.dataset(context.large_set), _SAMPLE)
    yield from sets("tools", "toolret", "appworld")(context)


EXPERIMENT = Experiment(
    name="rerankers",
    place=14,
    title="Other language models as rerankers",
    about=f"`pipeline-dense` with the models that `--model` names, over {_SAMPLE} seeded capabilities and whole sets.",
    panels=_panels,
    arms=lambda context: by_model(context, "pipeline-dense"),
    measures=(cost, ranking),
    tables=(
        TableForm(
            id="rerankers-match-1", caption="Match@1, %, and latency", paper="tab:crossmodel",
            columns={"match@1": share("match@1"), "p50, ms": median},
        ),
    ),
)  # fmt: skip
