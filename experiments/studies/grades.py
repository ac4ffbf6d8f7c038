"""First results by label and by grade: where several capabilities do the same, a label names only one."""

from collections.abc import Iterator
from typing import Any

import ir_measures
import numpy as np
from ir_measures import nDCG

from experiments.context import ExperimentContext
from experiments.experiment import Asked, Experiment, Panel, arms
from experiments.measures import first_is_right
from experiments.panels import of_queries
from experiments.recordings import Recordings
from experiments.report.cells import TableForm, share
from experiments.studies.language_model import SETS, TOGETHER
from experiments.studies.main import OURS, PLAIN_BM25
from mats.evaluation.measures import estimate
from mats.evaluation.systems.score import estimate_json

SERVES = 70  # The lowest grade, of 100, of a capability that serves a request, or a whole part of it


def graded(asked: Asked) -> dict[str, Any]:
    """Shares of queries by label and by grade; a result that nobody judged does not serve."""
    grades = {query.id: asked.panel.known[query.id] for query in asked.dataset.queries}
    first = [[grades[id].get(result) for result in answer.ranked[:5]] for id, answer in asked.answers.items()]
    qrels = [ir_measures.Qrel(id, result, round(grade)) for id in grades for result, grade in grades[id].items()]
    run = [
        ir_measures.ScoredDoc(id, result, -float(rank))
        for id, answer in asked.answers.items()
        for rank, result in enumerate(answer.ranked)
    ]
    ndcg = {metric.query_id: metric.value for metric in ir_measures.iter_calc([nDCG @ 5], qrels, run)}
    serves = np.array([float(bool(each) and (each[0] or 0) >= SERVES) for each in first])
    shown = sum(map(len, first))
    return {
        "label": estimate_json(estimate(first_is_right(asked.answers, asked.dataset))),
        "grade": estimate_json(estimate(serves)),
        "ndcg@5": round(float(np.mean([ndcg.get(id, 0.0) for id in grades])), 4),
        "unjudged": round(sum(each.count(None) for each in first) / shown, 4) if shown else 0.0,
    }


def _panels(context: ExperimentContext) -> Iterator[Panel]:
    recordings = Recordings(context.data / "recorded")
    grades = {name: recordings.grades(name) for name in context.sets if name in SETS}
    known = {f"{name}/{id}": scores for name, queries in grades.items() for id, scores in queries.items()}
    parts = {name: of_queries(name, context.dataset(name), each).parts for name, each in grades.items() if each}
    for name, part in parts.items():
        yield Panel(name, part, known=known)
    if parts:
        yield Panel(TOGETHER, tuple(each for part in parts.values() for each in part), known=known)


EXPERIMENT = Experiment(
    name="grades",
    place=7,
    title="Labels and equivalents",
    about=f"Graded first: the first result was graded {SERVES} or more of 100, blind, by a strong model, whatever the "
    "label says; no language model answers.",
    panels=_panels,
    arms=arms(PLAIN_BM25, OURS),
    measures=(graded,),
    tables=(
        TableForm(
            id="grades-shares", caption="First results by label and by grade, %",
            columns={
                "label first": share("label"), "graded first": share("grade"), "nDCG@5": share("ndcg@5"),
                "not judged": share("unjudged"),
            },
        ),
    ),
)  # fmt: skip
