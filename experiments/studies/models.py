"""Whole systems with other language models: a model that searches, and two pipelines."""

from experiments.context import ExperimentContext
from experiments.experiment import Arm, Experiment, arm
from experiments.measures import cost, ranking
from experiments.panels import LARGE, sets
from experiments.report.cells import TableForm, share

PAPERS = {
    "Nova Micro": "amazon.nova-micro-v1:0",
    "Nova Lite": "amazon.nova-lite-v1:0",
    "Claude 3.5 Haiku": "us.anthropic.claude-3-5-haiku-20241022-v1:0",
    "Claude Sonnet 4": "us.anthropic.claude-sonnet-4-20250514-v1:0",
    "Qwen3 Next": "qwen.qwen3-next-80b-a3b",
    "Mistral Large 3": "mistral.mistral-large-3-675b-instruct",
}
"""The models of the paper's two cross-model tables by their ids on Bedrock; `us.` is an inference profile."""


def by_model(context: ExperimentContext, *systems: str) -> list[Arm]:
    """Each system with each model that the command names, or with the configured one; the paper's others not run."""
    asked = context.model_ids or ("",)
    found = [
        arm(system, label=f"{system}, {id or context.models.names['reranker']}", model=id)
        for id in asked
        for system in systems
    ]
    missing = {name: id for name, id in PAPERS.items() if not any(id in each for each in asked)}
    return found + [
        arm(systems[-1], label=name, model=id, not_run=f"set MATS_BEDROCK=1 and give --model {id} --max-usd USD")
        for name, id in missing.items()
    ]


EXPERIMENT = Experiment(
    name="models",
    place=15,
    title="Other language models",
    about="A model that searches and two pipelines, each with the language models that `--model` names.",
    panels=sets(*LARGE),
    arms=lambda context: by_model(context, "search-and-pick", "pipeline-bm25", "pipeline-dense"),
    measures=(ranking, cost),
    tables=(
        TableForm(
            id="models-match-1",
            caption="Match@1, %",
            columns={"match@1": share("match@1")},
            paper="tab:crossmodel-open",
        ),
    ),
)
