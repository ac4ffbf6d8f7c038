"""Measures by grades."""

import pytest

from experiments.studies.grades import by_grades
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import JudgedQuery

A, B, C = Id("n/a"), Id("n/b"), Id("n/c")
QUERIES = [JudgedQuery("q 1", "one", frozenset({A})), JudgedQuery("q2", "two", frozenset({B}))]


def test_grades_count_equivalents_and_what_nobody_judged():
    grades = {"q 1": {A: 95.0, B: 70.0, C: 10.0}}
    graded = by_grades({"q 1": [B, Id("n/new"), A], "q2": [B]}, QUERIES, grades)
    assert [query.id for query in graded.queries] == ["q 1"]
    assert list(graded.first_serves) == [1.0]
    assert graded.unjudged == pytest.approx(1 / 3)
    ideal = by_grades({"q 1": [A, B, C]}, QUERIES, grades)
    assert ideal.ndcg_at_5[0] == pytest.approx(1.0)
    assert 0.5 < graded.ndcg_at_5[0] < 1.0
    assert list(by_grades({"q 1": []}, QUERIES, grades).first_serves) == [0.0]
