"""Retrievers alone and under the reranker, with other encoders, also one that was tuned for tools."""

from experiments.context import ExperimentContext
from experiments.experiment import Arm, Experiment, arm, arms
from experiments.measures import ranking
from experiments.panels import LARGE, sets
from experiments.report.cells import TableForm, share
from mats.settings import TITAN

_PAPERS = ("ToolBench/ToolBench_IR_bert_based_uncased", "BAAI/bge-large-en-v1.5", f"{TITAN}:0")


def _arms(context: ExperimentContext) -> list[Arm]:
    found = list(arms("bm25", "lexical", "pipeline-bm25", "dense", "pipeline-dense"))
    for id in dict.fromkeys((*context.encoders, *_PAPERS)):
        not_run = "" if id in context.encoders else f"give --encoder {id}, whose weights are fetched or called"
        found += [
            arm("dense", label=f"{id} alone", encoder=id, not_run=not_run),
            arm("pipeline-dense", label=f"{id}, reranked", encoder=id, not_run=not_run),
        ]
    return found


EXPERIMENT = Experiment(
    name="retrievers",
    place=35,
    title="Retrievers alone, and under the reranker",
    about="Words, the configured encoder, and the encoders that `--encoder` names.",
    panels=sets(*LARGE),
    arms=_arms,
    measures=(ranking,),
    tables=(
        TableForm(
            id="retrievers-shares", caption="Alone and reranked, %", paper="tab:tooltuned",
            columns={name: share(name) for name in ("match@1", "match@15", "recall@15")},
        ),
    ),
)  # fmt: skip
