"""The experiments over data sets small enough to check by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.data.enlarge import dense_slice
from experiments.studies import models, scale
from experiments.studies.context import ExperimentContext, first_is_right, has_candidate
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, JudgedQuery
from mats.evaluation.measures import mcnemar
from mats.evaluation.systems.base import SystemAnswer, ask, run_of
from mats.evaluation.systems.models import Models
from mats.settings import Settings
from tests.builders import a_registration


def a_query(id, *relevant, source=""):
    return JudgedQuery(id, id, frozenset(map(Id, relevant)), source)


def a_dataset(size, queries=()):
    registrations = [
        a_registration(namespace="n", name=f"t{i:03}", description=f"Does {i}. And more.") for i in range(size)
    ]
    return Dataset("made-up", registrations, list(queries), {}, "digest")


def an_answer(*ranked, retrieved=None):
    return SystemAnswer(ranked=list(map(Id, ranked)), retrieved=list(map(Id, retrieved or ranked)))


class TestMcNemar:
    def test_only_queries_on_which_two_systems_disagree_count(self):
        before, after = np.array([1, 1, 0, 0, 0, 0, 1.0]), np.array([1, 0, 1, 1, 1, 0, 1.0])
        paired = mcnemar(before, after)
        assert (paired.gained, paired.lost) == (3, 1)
        assert paired.p == pytest.approx(0.625)  # 2 * (1 + 4) / 2**4

    def test_the_papers_example_is_reproduced(self):
        before, after = np.array([0.0] * 14 + [1.0] * 4), np.array([1.0] * 14 + [0.0] * 4)
        assert mcnemar(before, after).p == pytest.approx(0.031, abs=5e-4)

    def test_equal_systems_do_not_differ(self):
        assert mcnemar(np.ones(5), np.ones(5)).p == 1.0


class TestAnswers:
    def test_answers_keep_the_order_of_the_queries_with_any_number_of_threads(self):
        queries = [a_query(f"q{i}") for i in range(20)]
        for at_once in (1, 4):
            answers = ask(lambda query: an_answer(query.id), queries, at_once=at_once)
            assert list(run_of(answers).items()) == [(q.id, [q.id]) for q in queries]

    def test_first_result_and_candidates_are_told_apart(self):
        dataset = a_dataset(0, [a_query("q1", "a"), a_query("q2", "b"), a_query("q3", "c")])
        answers = {"q1": an_answer("a", "b"), "q2": an_answer("a", "b"), "q3": an_answer("a")}
        assert list(first_is_right(answers, dataset)) == [1, 0, 0]
        assert list(has_candidate(answers, dataset)) == [1, 1, 0]


class TestScaleSweep:
    @given(
        gold=st.lists(st.sets(st.integers(0, 59), min_size=1, max_size=4), min_size=1, max_size=15),
        size=st.integers(4, 60),
    )
    def test_every_query_is_asked_once_in_a_registry_of_that_size_with_all_its_gold(self, gold, size):
        queries = [a_query(f"q{i}", *(f"n/t{n:03}" for n in ids)) for i, ids in enumerate(gold)]
        parts = list(scale.registries(a_dataset(60, queries), queries, size))
        assert [query.id for part in parts for query in part.queries] == [query.id for query in queries]
        for part in parts:
            ids = {registration.id for registration in part.registrations}
            assert len(part.registrations) == len(ids) == size
            assert all(query.relevant <= ids for query in part.queries)

    def test_a_larger_registry_holds_the_distractors_of_a_smaller_one(self):
        queries = [a_query("q", "n/t001")]
        small, large = (next(scale.registries(a_dataset(60, queries), queries, size)) for size in (10, 30))
        assert {r.id for r in small.registrations} < {r.id for r in large.registrations}

    def test_the_slice_leaves_out_queries_whose_gold_is_not_registered(self):
        asked = scale.query_slice(a_dataset(3, [a_query("good", "n/t001"), a_query("lost", "n/t999")]))
        assert [query.id for query in asked] == ["good"]

    @pytest.mark.parametrize(
        ("single", "two", "size"),
        [([9, 5, 1], [8, 6, 4], 50), ([1, 1, 1], [2, 2, 2], 10), ([3, 1, 3], [2, 2, 2], None)],
    )
    def test_the_crossover_is_where_two_stages_get_ahead_for_good(self, single, two, size):
        rows = {
            name: [{"size": n, "match@1": {"mean": v}} for n, v in zip((10, 50, 100), values, strict=True)]
            for name, values in ((scale.SINGLE, single), (scale.TWO_STAGE, two))
        }
        assert scale._find_crossover(rows, dict.fromkeys(rows, ""))["size"] == size

    def test_a_crossover_that_was_not_measured_says_why(self):
        why = {scale.SINGLE: "needs an LLM", scale.TWO_STAGE: "needs an LLM"}
        assert scale._find_crossover({}, why) == {"not_run": "needs an LLM"}


def test_a_folder_without_any_of_the_sets_is_an_error(tmp_path):
    with (
        pytest.raises(DatasetInvalid, match="holds none of tools"),
        ExperimentContext(data=tmp_path, models=Models(Settings())),
    ):
        pytest.fail("nothing can be measured there")


def test_the_pool_keeps_the_queries_it_answers_and_only_the_gold_it_has():
    dataset = a_dataset(1, [a_query("q1", "n/t000", "n/t009"), a_query("q2", "n/t009")])
    assert [(q.id, q.relevant) for q in models.sample_pool(dataset, 1).queries] == [("q1", {"n/t000"})]


def test_a_slice_has_all_that_its_queries_ask_for():
    queries = [a_query(f"q{i}", f"n/t{i:03}", f"n/t{i + 1:03}") for i in range(40)]
    part = dense_slice(a_dataset(60, [*queries, a_query("lost", "n/t999")]), 12)
    ids = {registration.id for registration in part.registrations}
    assert len(ids) == len(part.registrations) == 12
    assert part.queries
    assert all(query.relevant <= ids for query in part.queries)
