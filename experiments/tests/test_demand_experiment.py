"""Named families and false gaps against counting by hand."""

import random

import numpy as np

from experiments.studies.demand import choose_families, count_gaps
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import JudgedQuery


def test_a_family_is_named_by_half_of_a_gap_and_a_gap_is_false_by_more_than_half():
    gaps = [[1, 1, None], [2, None], [None, None, 3], [4, 5], []]
    assert count_gaps(gaps) == {"gaps": 5, "named": 4, "false": 1}


def test_no_gaps_name_nothing():
    assert count_gaps([]) == {"gaps": 0, "named": 0, "false": 0}


def test_families_share_neither_members_nor_queries():
    vectors = {Id("a"): np.array([1, 0]), Id("b"): np.array([0.9, 0.43589]), Id("c"): np.array([-1, 0])}
    queries = [
        *(JudgedQuery(f"a{n}", "", frozenset({Id("a")})) for n in range(3)),
        *(JudgedQuery(f"b{n}", "", frozenset({Id("b")})) for n in range(5)),
        *(JudgedQuery(f"c{n}", "", frozenset({Id("c")})) for n in range(4)),
        JudgedQuery("ac", "", frozenset({Id("a"), Id("c")})),
    ]
    [family] = choose_families(queries, vectors, random.Random(1))
    assert family.members == {Id("a"), Id("b")}
    assert [query.id for query in family.queries] == ["a0", "a1", "a2", "b0", "b1", "b2", "b3", "b4"]
