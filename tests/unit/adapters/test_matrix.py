"""The matrix in memory, updated in place."""

from copy import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.adapters.sqlite.arrays import best_places
from mats.adapters.sqlite.matrix import Entries, Matrix
from mats.domain.capability.capability import Id, Kind
from mats.domain.search.query import Filter


def unit(*components: float) -> np.ndarray:
    vector = np.array(components, np.float32)
    return vector / np.linalg.norm(vector)


def put(matrix: Matrix, row: int, vector=None, *, name: str | None = None) -> None:
    blob = None if vector is None else vector.tobytes()
    matrix.put(Entries([row], [Id(name or f"n/{row}")], [Kind.TOOL], ["n"], [frozenset()], [None], [blob]))


def nearest(matrix: Matrix, vector, depth: int = 10) -> list[str]:
    return [id for id, _ in matrix.nearest(vector, matrix.mask(Filter()), depth)]


def test_room_grows_by_doubling_so_that_most_registrations_copy_nothing():
    matrix, rooms = Matrix(), set()
    for row in range(1, 5_000):
        put(matrix, row, unit(1, row))
        rooms.add(len(matrix._vectors._vectors))
    assert len(rooms) <= 4


def test_a_query_of_another_dimension_finds_nothing_by_meaning():
    matrix = Matrix()
    put(matrix, 1, unit(1, 0))
    assert nearest(matrix, unit(1, 0, 0)) == []


def test_a_row_without_a_vector_may_come_first():
    matrix = Matrix()
    put(matrix, 2_000)
    put(matrix, 1, unit(1, 0))
    assert nearest(matrix, unit(1, 0)) == ["n/1"]


@given(st.lists(st.tuples(st.integers(1, 30), st.none() | st.integers(0, 3)), max_size=60), st.integers(1, 8))
def test_it_agrees_with_looking_at_every_row(changes, depth):
    matrix, rows = Matrix(), {}
    for row, angle in changes:
        if angle is None:
            matrix.drop(row)
            rows.pop(row, None)
        else:
            put(matrix, row, unit(1, angle))
            rows[row] = unit(1, angle)
    expected = sorted(rows, key=lambda row: (-round(float(rows[row] @ unit(1, 0)), 6), f"n/{row}"))
    assert nearest(matrix, unit(1, 0), depth) == [f"n/{row}" for row in expected[:depth]]


def clustered(count: int, seed: int) -> np.ndarray:
    """Unit vectors around centres, with a spectrum that falls off as that of sentence vectors does."""
    chance = np.random.default_rng(seed)
    points = chance.normal(size=(9, 256))[chance.integers(9, size=count)] + chance.normal(size=(count, 256))
    points *= np.exp(-np.arange(256) / 64)
    points = (points @ np.linalg.qr(chance.normal(size=(256, 256)))[0]).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def filled(points: np.ndarray) -> Matrix:
    matrix, rows, size = Matrix(), range(len(points)), len(points)
    ids, blobs = [Id(f"n/{row}") for row in rows], [point.tobytes() for point in points]
    matrix.put(Entries(rows, ids, [Kind.TOOL] * size, ["n"] * size, [frozenset()] * size, [None] * size, blobs))
    return matrix


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_are_those_of_exact_cosines(seed):
    points = clustered(5_000, seed)
    queries, points = points[:20], points[20:]
    matrix = filled(points)
    for query in queries:
        cosines = dict(enumerate((points @ query).tolist()))
        expected = sorted(cosines, key=lambda row: -cosines[row])[:200]
        hits = matrix.nearest(query, matrix.mask(Filter()), 200)
        assert {int(id[2:]) for id, _ in hits} == set(expected)
        assert [cosine for _, cosine in hits] == pytest.approx([cosines[row] for row in expected], abs=1e-6)


def test_equal_vectors_have_equal_cosines_in_every_way_to_ask():
    points = clustered(50, 1)
    matrix = filled(np.concatenate([points, points]))
    for number, query in enumerate(points[:10]):
        first, second, *_ = matrix.nearest(query, matrix.mask(Filter()), 5)
        assert [first[0], second[0]] == [f"n/{row}" for row in sorted((number, 50 + number), key=str)]
        assert {number: first[1], 50 + number: second[1]} == matrix.cosines(query, [number, 50 + number, 9_999])


def test_a_copy_of_the_matrix_finds_the_same_and_changes_apart():
    points = clustered(60, 5)
    matrix = filled(points)
    before = nearest(matrix, points[3])
    copied = copy(matrix)
    assert nearest(copied, points[3]) == before
    put(copied, 60, points[3])
    copied.drop(3)
    assert nearest(copied, points[3])[0] == "n/60"
    assert nearest(matrix, points[3]) == before


@given(
    st.integers(0, 1_000),
    st.integers(0, 40) | st.integers(8_000, 30_000),
    st.integers(1, 6) | st.integers(1, 600),
    st.sampled_from([np.float64, np.int32]),
    st.floats(0, 1),
    st.sampled_from([-np.inf, 0, 3]),
)
def test_the_best_places_are_those_of_sorting(seed, size, depth, kind, share, above):
    chance = np.random.default_rng(seed)
    values, mask = chance.integers(-5, 400, size).astype(kind), chance.random(size) < share
    values[np.arange(size) % 7 == 0] = 1_000 * (seed % 2)  # what a sample may or may not see
    for admitted in (mask, np.ones(size, np.bool_)):
        held = np.sort(values[admitted & (values > above)])[-depth:]
        expected = np.flatnonzero(admitted & (values > above) & (values >= held[0])) if len(held) else []
        given_mask = mask if admitted is mask else None
        assert best_places(values, depth, above=above, mask=given_mask).tolist() == list(expected)
