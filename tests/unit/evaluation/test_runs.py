"""Runs as TREC files, and measures by grades."""

import pytest

from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, JudgedQuery
from mats.evaluation.measures import by_grades
from mats.evaluation.runs import compare_runs, read_run, write_run

A, B, C = Id("n/a b: c"), Id("n/ü%20"), Id("n/c")
QUERIES = [JudgedQuery("q 1", "one", frozenset({A})), JudgedQuery("q2", "two", frozenset({B}))]
DATASET = Dataset("made", [], QUERIES, {}, "digest")


def test_a_run_round_trips_with_ids_of_any_letters_and_what_is_no_run_is_refused(tmp_path):
    run = {"q 1": [B, A, C], "q2": [A]}
    write_run(tmp_path / "a.run", run, "hybrid")
    assert read_run(tmp_path / "a.run") == run
    assert (tmp_path / "a.run").read_text().splitlines()[0] == "q%201 Q0 n/%C3%BC%2520 1 3 hybrid"

    (tmp_path / "a.run").write_text("some words\n")
    with pytest.raises(DatasetInvalid, match=r"a\.run"):
        read_run(tmp_path / "a.run")


def test_two_runs_are_compared_on_the_queries_of_both():
    results = compare_runs({"q 1": [B, A], "q2": [B]}, {"q 1": [A, B]}, DATASET)
    assert results["queries"] == 1
    assert results["measures"]["match@1"]["difference"] == 1.0
    assert results["first_results"] == {"gained": 1, "lost": 0, "p": 1.0}
    with pytest.raises(DatasetInvalid):
        compare_runs({"q 1": [A]}, {"q2": [A]}, DATASET)


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
