"""Raw against enriched registries of well-described capabilities, all else equal."""

from experiments.experiment import ALL, RAW, Experiment, arm
from experiments.measures import paired, ranking, written
from experiments.panels import pool, sets
from experiments.report.cells import TableForm, amount, change, share
from experiments.studies.main import OURS

SIZE = 1_000
ARMS = (
    arm("pipeline-bm25", label="raw", writes=RAW),
    arm("pipeline-bm25", label="enriched", writes=ALL, before="raw"),
    arm(OURS, label=f"{OURS}, raw", writes=RAW),
    arm(OURS, label=f"{OURS}, enriched", writes=ALL, before=f"{OURS}, raw"),
)
"""The paper's pipeline of its ablations, then the first stage as shipped."""

EXPERIMENT = Experiment(
    name="enrichment",
    place=40,
    title="Enrichment of well-described registries",
    about=f"Seeded pools of at most {SIZE:,} capabilities: the paper's three sets, or what stands for them. "
    "`raw` and `enriched` are `pipeline-bm25`, as in the paper. In per cent, with bootstrap 95 % intervals.",
    panels=lambda context: (
        pool(whole.parts[0], SIZE)
        for whole in sets("appworld", "toolret", "tools", "skills", "mcp-tools-closed")(context)
    ),
    arms=ARMS,
    measures=(ranking, paired, written),
    tables=(
        TableForm(
            id="enrichment-arms", caption="Raw and enriched, %", paper="tab:ablation",
            columns={
                **{name: share(name) for name in ("match@1", "match@3", "recall@15")},
                "gained / lost": change,
                "empty summaries": amount("empty_summaries"),
            },
        ),
    ),
)  # fmt: skip
