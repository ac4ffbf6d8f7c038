"""Measure runs by graded judgements instead of labels, so that equivalents count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ir_measures
import numpy as np
from ir_measures import nDCG

from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import Run, Values, estimate, per_query
from mats.evaluation.systems.base import Answers, run_of
from mats.evaluation.systems.score import estimate_json

Grades = Mapping[str, Mapping[str, float]]  # By query id, judgements of capabilities by id, from 0 to 100
SERVES = 70  # The lowest grade of a capability that serves a request, or a whole part of it


@dataclass(frozen=True, slots=True)
class Graded:
    """A run by judgements instead of labels; values by query, in the order of `queries`."""

    queries: Sequence[JudgedQuery]  # Those that were judged
    first_serves: Values  # 1 if the first result has a grade of at least SERVES, else 0
    ndcg_at_5: Values  # Over grades as gains; a result that nobody judged has none
    unjudged: float  # Share of the first five results that nobody judged, which count as not serving


def by_grades(run: Run, queries: Sequence[JudgedQuery], grades: Grades) -> Graded:
    """Measure a run on the queries that were judged."""
    judged = [query for query in queries if grades.get(query.id)]
    first = [[grades[query.id].get(id) for id in run[query.id][:5]] for query in judged]
    qrels = [ir_measures.Qrel(query.id, id, round(g)) for query in judged for id, g in grades[query.id].items()]
    scored = [
        ir_measures.ScoredDoc(query.id, id, -float(rank)) for query in judged for rank, id in enumerate(run[query.id])
    ]
    ndcg = {metric.query_id: metric.value for metric in ir_measures.iter_calc([nDCG @ 5], qrels, scored)}
    shown = sum(map(len, first))
    return Graded(
        queries=judged,
        first_serves=np.array([float(bool(each) and (each[0] or 0) >= SERVES) for each in first]),
        ndcg_at_5=np.array([ndcg.get(query.id, 0.0) for query in judged]),
        unjudged=sum(each.count(None) for each in first) / shown if shown else 0.0,
    )


def graded_json(answers: Answers, dataset: Dataset, grades: Grades) -> dict[str, Any]:
    graded = by_grades(run_of(answers), dataset.queries, grades)
    if not graded.queries:
        return {"queries": 0}
    labelled = per_query(run_of(answers), graded.queries)["match@1"]
    return {
        "queries": len(graded.queries),
        "label_first": estimate_json(estimate(labelled)),
        "grade_first": estimate_json(estimate(graded.first_serves)),
        "ndcg@5": estimate_json(estimate(graded.ndcg_at_5)),
        "unjudged": round(graded.unjudged, 4),
    }
