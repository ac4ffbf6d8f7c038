"""The list of routes."""

from collections import Counter

from mats.edge.routes import ROUTES


def test_a_path_has_one_method():
    """Dispatch looks for a path alone, and OpenAPI has an entry for each."""
    assert [path for path, count in Counter(route.path for route in ROUTES).items() if count > 1] == []
