"""Measures by grades."""

import pytest

from experiments.experiment import Asked, Panel
from experiments.studies.grades import graded
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.systems.base import SystemAnswer

A, B, C = Id("n/a"), Id("n/b"), Id("n/c")


@pytest.mark.parametrize(
    ("ranked", "label", "grade", "unjudged", "ndcg"),
    [
        ([B, Id("n/new"), A], 0, 1, 1 / 3, (0.5, 0.99)),
        ([A, B, C], 1, 1, 0, (1, 1)),
        ([C, A], 0, 0, 0, (0.4, 0.99)),
        ([], 0, 0, 0, (0, 0)),
    ],
)
def test_grades_count_equivalents_and_what_nobody_judged(ranked, label, grade, unjudged, ndcg):
    dataset = Dataset("made", [], [JudgedQuery("made/q 1", "one", frozenset({A}))], {}, "")
    panel = Panel("made", (dataset,), known={"made/q 1": {A: 95.0, B: 70.0, C: 10.0}})
    found = graded(Asked(panel=panel, answers={"made/q 1": SystemAnswer(ranked=ranked)}, dataset=dataset, before=None))
    assert (found["label"]["mean"], found["grade"]["mean"]) == (label, grade)
    assert found["unjudged"] == pytest.approx(unjudged, abs=1e-4)
    assert ndcg[0] <= found["ndcg@5"] <= ndcg[1]
