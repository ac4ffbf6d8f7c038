"""Each of the writer's five fields alone over raw profiles."""

from experiments.experiment import RAW, Experiment, arm
from experiments.measures import paired, ranking
from experiments.panels import pool
from experiments.report.cells import TableForm, change, share
from mats.domain.profile.profile import Enrichment

_SIZE = 500

EXPERIMENT = Experiment(
    name="fields",
    place=44,
    title="Each written field alone",
    about=f"`pipeline-bm25` over a seeded pool of {_SIZE} capabilities to which one field of the writer is added.",
    panels=lambda context: [pool(context.dataset(context.large_set), _SIZE)],
    arms=(
        arm("pipeline-bm25", label="none", writes=RAW),
        *(arm("pipeline-bm25", label=name, writes=name, before="none") for name in Enrichment.model_fields),
    ),
    measures=(ranking, paired),
    tables=(
        TableForm(
            id="fields-arms", caption="One field added, %", paper="§ Ablations",
            columns={**{name: share(name) for name in ("match@1", "match@3", "recall@15")}, "gained / lost": change},
        ),
    ),
)  # fmt: skip
