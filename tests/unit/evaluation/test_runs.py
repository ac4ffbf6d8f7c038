"""Runs as TREC files."""

import pytest

from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, JudgedQuery
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
