"""Vectors in memory, searched in one exact pass or in two."""

from copy import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.adapters.sqlite.vectors import Vectors

WIDTH, DEPTH = 256, 200


def clustered(count: int, *, clusters: int, spread: float, seed: int) -> np.ndarray:
    """Unit vectors around centres, with a spectrum that falls off as that of sentence vectors does."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(clusters, WIDTH))
    points = centres[chance.integers(clusters, size=count)] + spread * chance.normal(size=(count, WIDTH))
    points *= np.exp(-np.arange(WIDTH) / (WIDTH / 4))
    points = (points @ np.linalg.qr(chance.normal(size=(WIDTH, WIDTH)))[0]).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def filled(points: np.ndarray, *, exact_up_to: int) -> Vectors:
    vectors = Vectors(16, points.shape[1], exact_up_to=exact_up_to)
    put(vectors, dict(enumerate(points)))
    return vectors


def put(vectors: Vectors, rows: dict[int, np.ndarray]) -> None:
    vectors.put(np.array(list(rows)), np.array(list(rows.values())))


def found(vectors: Vectors, query: np.ndarray, mask: np.ndarray, depth: int = DEPTH) -> dict[int, float]:
    rows, cosines = vectors.nearest(query, mask, depth)
    best = np.argsort(-cosines, kind="stable")[:depth]
    return dict(zip(rows[best].tolist(), cosines[best].tolist(), strict=True))


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 60), st.floats(0.2, 2.0), st.integers(0, 10_000), st.floats(0.3, 1.0))
def test_two_passes_find_nearly_all_and_their_cosines_are_exact(clusters, spread, seed, share):
    points = clustered(5_000, clusters=clusters, spread=spread, seed=seed)
    queries, points = points[:8], points[8:]
    mask = np.random.default_rng(seed).random(len(points)) < share
    vectors, recalls = filled(points, exact_up_to=1_000), []
    for query in queries:
        exact = np.where(mask, points @ query, -2)
        nearest = set(np.argsort(-exact)[:DEPTH].tolist())
        hits = found(vectors, query, mask)
        assert all(mask[row] and cosine == pytest.approx(exact[row], abs=1e-6) for row, cosine in hits.items())
        assert len(hits) == DEPTH
        recalls.append(len(nearest & hits.keys()) / DEPTH)
    assert np.mean(recalls) >= 0.99


def test_rows_changed_added_and_removed_since_the_axes_were_computed_count_at_once():
    points = clustered(2_000, clusters=9, spread=1, seed=2)
    vectors = filled(points, exact_up_to=500)
    mask = np.ones(2_001, np.bool_)
    found(vectors, points[0], mask)
    put(vectors, {7: points[0], 2_000: points[0]})
    vectors.drop(np.array([0]))
    best = list(found(vectors, points[0], mask))
    assert set(best[:2]) == {7, 2_000}
    assert 0 not in best


def test_a_copy_finds_the_same_and_is_independent():
    points = clustered(2_000, clusters=9, spread=1, seed=5)
    vectors = filled(points, exact_up_to=500)
    mask = np.ones(2_001, np.bool_)
    before = found(vectors, points[3], mask)
    copied = copy(vectors)
    assert found(copied, points[3], mask) == before
    put(copied, {2_000: points[3], 4: points[3]})
    assert found(vectors, points[3], mask) == before
    assert {3, 4, 2_000} == set(list(found(copied, points[3], mask))[:3])


def test_many_changes_across_blocks_and_gaps_count_at_once():
    points = clustered(3_000, clusters=9, spread=1, seed=6)
    vectors = filled(points[:1_500], exact_up_to=500)
    mask = np.ones(60_000, np.bool_)
    found(vectors, points[0], mask)
    rows = {50_000 + number: point for number, point in enumerate(points[1_500:])}
    put(vectors, {**rows, 3: points[9]})
    everything = {**dict(enumerate(points[:1_500])), **rows, 3: points[9]}
    exact = {row: float(point @ points[9]) for row, point in everything.items()}
    expected = set(sorted(exact, key=lambda row: -exact[row])[:DEPTH])
    assert len(found(vectors, points[9], mask).keys() & expected) >= 0.99 * DEPTH
    assert {3, 9} <= set(list(found(vectors, points[9], mask))[:2])
