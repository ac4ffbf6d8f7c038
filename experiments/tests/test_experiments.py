"""The experiments over data sets small enough to check by hand."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import panels
from experiments.context import ExperimentContext
from experiments.data.enlarge import dense_slice
from experiments.experiment import Asked, Panel, arm
from experiments.measures import CATEGORIES, factors, paired
from experiments.studies import scale, sparsity
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, JudgedQuery
from mats.evaluation.measures import mcnemar
from mats.evaluation.systems.base import SystemAnswer, ask, run_of
from mats.evaluation.systems.models import Models
from mats.settings import Settings
from tests.builders import a_registration

NAMES = scale.SINGLE, scale.TWO_STAGE


def a_query(id, *relevant, source=""):
    return JudgedQuery(id, id, frozenset(map(Id, relevant)), source)


def a_dataset(size, queries=()):
    registrations = [
        a_registration(namespace="n", name=f"t{i:03}", description=f"Does {i}. And more.") for i in range(size)
    ]
    return Dataset("made-up", registrations, list(queries), {}, "digest")


def an_answer(*ranked, retrieved=None):
    return SystemAnswer(ranked=list(map(Id, ranked)), retrieved=list(map(Id, retrieved or ranked)))


@pytest.mark.parametrize(
    ("before", "after", "gained", "lost", "p"),
    [
        ([1, 1, 0, 0, 0, 0, 1], [1, 0, 1, 1, 1, 0, 1], 3, 1, 0.625),  # 2 * (1 + 4) / 2**4
        ([0] * 14 + [1] * 4, [1] * 14 + [0] * 4, 14, 4, 0.031),  # The paper's example
        ([1] * 5, [1] * 5, 0, 0, 1),
    ],
)
def test_only_queries_on_which_two_systems_disagree_count(before, after, gained, lost, p):
    paired = mcnemar(np.array(before, dtype=float), np.array(after, dtype=float))
    assert (paired.gained, paired.lost) == (gained, lost)
    assert paired.p == pytest.approx(p, abs=5e-4)


class TestAnswers:
    def test_answers_keep_the_order_of_the_queries_with_any_number_of_threads(self):
        queries = [a_query(f"q{i}") for i in range(20)]
        for at_once in (1, 4):
            answers = ask(lambda query: an_answer(query.id), queries, at_once=at_once)
            assert list(run_of(answers).items()) == [(q.id, [q.id]) for q in queries]


class TestScaleSweep:
    @given(
        gold=st.lists(st.sets(st.integers(0, 59), min_size=1, max_size=4), min_size=1, max_size=15),
        size=st.integers(4, 60),
    )
    def test_every_query_is_asked_once_in_a_registry_of_that_size_with_all_its_gold(self, gold, size):
        queries = [a_query(f"q{i}", *(f"n/t{n:03}" for n in ids)) for i, ids in enumerate(gold)]
        parts = list(panels.registries(a_dataset(60, queries), queries, size))
        assert [query.id for part in parts for query in part.queries] == [query.id for query in queries]
        for part in parts:
            ids = {registration.id for registration in part.registrations}
            assert len(part.registrations) == len(ids) == size
            assert all(query.relevant <= ids for query in part.queries)

    def test_a_larger_registry_holds_the_distractors_of_a_smaller_one(self):
        queries = [a_query("q", "n/t001")]
        small, large = (next(panels.registries(a_dataset(60, queries), queries, size)) for size in (10, 30))
        assert {r.id for r in small.registrations} < {r.id for r in large.registrations}

    def test_the_slice_leaves_out_queries_whose_gold_is_not_registered(self):
        asked = panels.query_slice(a_dataset(3, [a_query("good", "n/t001"), a_query("lost", "n/t999")]), 100)
        assert [query.id for query in asked] == ["good"]

    @pytest.mark.parametrize(
        ("single", "two", "size"),
        [([9, 5, 1], [8, 6, 4], 50), ([1, 1, 1], [2, 2, 2], 10), ([3, 1, 3], [2, 2, 2], None)],
    )
    def test_the_crossover_is_where_two_stages_get_ahead_for_good(self, single, two, size):
        found = {
            str(n): {
                "documents": n,
                "systems": {name: {"match@1": {"mean": v}} for name, v in zip(NAMES, pair, strict=True)},
            }
            for n, *pair in zip((10, 50, 100), single, two, strict=True)
        }
        assert scale.crossover(found) == size

    def test_a_crossover_that_was_not_measured_says_why(self):
        systems = {name: {"not_run": "needs an LLM"} for name in NAMES}
        assert scale.crossover({"10": {"documents": 10, "systems": systems}}) == "needs an LLM"


class TestEntries:
    """Three queries: right, wrong with the gold among the candidates, and without it."""

    DATASET = a_dataset(0, [a_query("q1", "a"), a_query("q2", "b"), a_query("q3", "c", "d"), a_query("q4", "e")])
    ANSWERS: ClassVar = {
        "q1": an_answer("a", "b"), "q2": an_answer("a", "b"), "q3": an_answer("a"), "q4": an_answer(retrieved=["e"]),
    }  # fmt: skip

    def ask(self, **options):
        return Asked(panel=Panel("made", (self.DATASET,)), answers=self.ANSWERS, dataset=self.DATASET, **options)

    def test_the_factors_multiply_to_match_at_1_and_every_miss_has_a_cause(self):
        found = factors(self.ask(before=None))
        share = {name: found[name]["mean"] for name in ("match@1", "candidates", "conditional")}
        assert share["match@1"] == pytest.approx(share["candidates"] * share["conditional"], abs=1e-3)
        assert found["misses_at_retrieval"] == pytest.approx(1 / 3, abs=1e-3)
        assert found["categories"] == dict(zip(CATEGORIES, (1, 1, 0, 1), strict=True))

    def test_two_arms_are_compared_query_by_query(self):
        before = {**self.ANSWERS, "q1": an_answer("b"), "q2": an_answer("b")}
        found = paired(self.ask(before=before))
        assert found["mcnemar"] == {"gained": 1, "lost": 1, "p": 1.0}
        assert found["gain"]["match@3"]["mean"] == 0.25
        assert paired(self.ask(before=None)) == {}


class TestPanels:
    def test_small_sources_are_asked_together(self):
        queries = [a_query(f"{source}{n}", "n/t000", source=source) for source in "aab" for n in range(2)]
        found = list(panels.by_source(a_dataset(1, [*queries, a_query("q", "n/t000")]), 4))
        assert [(panel.label, panel.queries) for panel in found] == [
            ("made-up: a", 4), ("made-up: long tail (2 sources)", 3),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("level", "description"), [("full", "Does 0. And more."), ("hint", "Does 0."), ("name-only", "")]
    )
    def test_a_level_keeps_so_much_of_the_owners_text(self, level, description):
        assert sparsity.LEVELS[level](a_dataset(1).registrations[0]).description == description

    def test_the_pool_keeps_the_queries_it_answers_and_only_the_gold_it_has(self):
        dataset = a_dataset(1, [a_query("q1", "n/t000", "n/t009"), a_query("q2", "n/t009")])
        (part,) = panels.pool(dataset, 1).parts
        assert [(q.id, q.relevant) for q in part.queries] == [("q1", {"n/t000"})]


class TestContext:
    def test_sets_with_equal_ids_of_queries_are_told_apart(self, tmp_path):
        parts = tuple(replace(a_dataset(3, [a_query("q", f"n/t00{n}")]), name=f"set {n}") for n in (1, 2))
        context = ExperimentContext(data=tmp_path, models=Models(Settings(encoder="none")))
        asked = context.ask(Panel("both", parts), arm("bm25"), None)
        assert list(asked.answers) == ["set 1/q", "set 2/q"]
        assert [query.id for query in asked.dataset.queries] == list(asked.answers)


def test_a_folder_without_any_of_the_sets_is_an_error(tmp_path):
    with (
        pytest.raises(DatasetInvalid, match="holds none of tools"),
        ExperimentContext(data=tmp_path, models=Models(Settings())),
    ):
        pytest.fail("nothing can be measured there")


def test_a_slice_has_all_that_its_queries_ask_for():
    queries = [a_query(f"q{i}", f"n/t{i:03}", f"n/t{i + 1:03}") for i in range(40)]
    part = dense_slice(a_dataset(60, [*queries, a_query("lost", "n/t999")]), 12)
    ids = {registration.id for registration in part.registrations}
    assert len(ids) == len(part.registrations) == 12
    assert part.queries
    assert all(query.relevant <= ids for query in part.queries)
