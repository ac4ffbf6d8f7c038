"""The list of routes."""

from collections import Counter

from mats.edge.routes import ROUTES


def test_a_path_has_one_method():
    """Dispatch looks for a path alone, and OpenAPI has an entry for each."""
    assert [path for path, count in Counter(route.documented_path for route in ROUTES).items() if count > 1] == []
    methods = {(route.path, route.method) for route in ROUTES}
    assert len(methods) == len({path for path, _ in methods})


def test_a_route_with_an_ending_comes_before_the_route_of_its_path():
    """Dispatch takes the first that matches."""
    places = {route.documented_path: place for place, route in enumerate(ROUTES)}
    for route in ROUTES:
        if route.ending:
            assert places[route.documented_path] < places[route.path.replace("+}", "}")]
