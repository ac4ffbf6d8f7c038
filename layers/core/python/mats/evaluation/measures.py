"""Measures of a run by ir_measures (trec_eval's definitions), with bootstrap intervals by scipy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ir_measures
import numpy as np
import numpy.typing as npt
from ir_measures import RR, R, Success
from scipy.stats import binomtest, bootstrap

from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import JudgedQuery

Run = Mapping[str, Sequence[Id]]  # The ranked ids of every query, best first

MEASURES = {
    "match@1": Success @ 1,
    "match@3": Success @ 3,
    "match@5": Success @ 5,
    "match@15": Success @ 15,
    "mrr": RR,
    "recall@15": R @ 15,
    "recall@5": R @ 5,
}
"""The paper's names. Match@k: any gold in the first k; MRR over the list returned; Recall@k: share of gold in them."""
COMPLETE = "all@15"  # True if all gold is among the first 15, which a task with several steps needs
NAMES = (*MEASURES, COMPLETE)

RESAMPLES = 1_000
SEED = 20_260

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over queries and its bootstrap 95 % interval."""

    mean: float
    low: float
    high: float


def per_query(run: Run, queries: Sequence[JudgedQuery]) -> dict[str, Values]:
    """Every measure of every query, in the order of the queries; 0 where nothing was returned."""
    position = {query.id: i for i, query in enumerate(queries)}
    qrels = [ir_measures.Qrel(query.id, id, 1) for query in queries for id in query.relevant]
    # falling integers as scores: trec_eval would break ties in another order
    scored = [
        ir_measures.ScoredDoc(query, id, float(len(ids) - rank))
        for query, ids in run.items()
        for rank, id in enumerate(ids)
    ]
    values = {name: np.zeros(len(queries)) for name in MEASURES}
    names = {str(measure): name for name, measure in MEASURES.items()}
    for metric in ir_measures.iter_calc(list(MEASURES.values()), qrels, scored):
        values[names[str(metric.measure)]][position[metric.query_id]] = metric.value
    return {**values, COMPLETE: (values["recall@15"] == 1).astype(float)}


def estimate(values: Values) -> Estimate:
    """The mean with its percentile interval over 1,000 seeded resamples of the queries."""
    if len(values) < 2 or values.min() == values.max():
        return Estimate(float(values.mean()), float(values.mean()), float(values.mean()))
    interval = bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=np.random.default_rng(SEED)
    ).confidence_interval
    return Estimate(float(values.mean()), float(interval.low), float(interval.high))


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Queries that only the second of two systems answers (`gained`), and only the first (`lost`)."""

    gained: int
    lost: int
    p: float  # Two-sided exact McNemar test; 1.0 if they never differ


def mcnemar(before: Values, after: Values) -> PairedTest:
    """Compare two systems on the same queries, in the same order; a value above 0 is a hit.

    McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 1947, in its
    exact form: the binomial test over the queries on which the two differ.
    """
    gained, lost = int(((after > 0) & (before <= 0)).sum()), int(((after <= 0) & (before > 0)).sum())
    p = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return PairedTest(gained, lost, p)
