"""Tokens, dollars and latency of a query, system by system."""

from experiments.experiment import Experiment, arms
from experiments.measures import cost
from experiments.panels import sets
from experiments.report.cells import NONE, TableForm, amount, median, share
from experiments.variants import SYSTEMS

EXPERIMENT = Experiment(
    name="efficiency",
    place=120,
    title="Cost and latency",
    about="Means per query, and the median of its time without waiting for other queries.",
    panels=sets(),
    arms=arms(*SYSTEMS),
    measures=(cost,),
    tables=(
        TableForm(
            id="efficiency-cost", caption="Cost of a query", paper="tab:efficiency",
            columns={
                "match@1, %": share("match@1"),
                "calls": amount("calls", 1),
                "tokens in": amount("input_tokens"),
                "tokens out": amount("output_tokens"),
                "$ per 1,000 queries": amount("usd_per_1000", 4),
                "p50, ms": median,
                "counted": lambda cell: cell.get("counted", NONE),
            },
            note="The paper's pipelines are estimates after the fact. Of recorded replies, tokens are "
            "WordPiece's of the request as sent and of the reply, dollars Nova Micro's, and the time is not known.",
        ),
    ),
)  # fmt: skip
