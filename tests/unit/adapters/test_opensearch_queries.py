"""Queries of the OpenSearch index."""

from array import array

import pytest

from mats.adapters.opensearch import mapping


@pytest.mark.parametrize("wanted", [1, 216, 1_000])
def test_a_search_of_a_graph_keeps_at_least_what_it_returns(wanted: int):
    searched = mapping.nearest(array("f", [1.0]), wanted, [])["knn"]["vector"]
    assert searched["k"] == wanted
    assert searched["method_parameters"]["ef_search"] >= max(wanted, 400), "fewer find too little in a single segment"
