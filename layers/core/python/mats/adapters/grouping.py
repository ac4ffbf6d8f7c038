"""Vectors grouped by similarity."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mats.ports import Grouped

_BLOCK = 1_000  # Rows compared at once; bounds memory beside the matrix of neighbours, a byte for each pair
_CLOSER = 0.1  # So much nearer to the centre of a group must something served be, to count against it


def group_by_similarity(vectors: Sequence[bytes], others: Sequence[bytes], *, least_cosine: float) -> list[Grouped]:
    """Group vectors by exclusion spheres: the one with most neighbours leads a group of them, and so on.

    Butina, "Unsupervised Data Base Clustering", J. Chem. Inf. Comput. Sci. 1999; the same for the same order of input.

    Args:
        vectors: Packed as in receipts, of one length.
        others: Vectors of the same length that are not grouped.
        least_cosine: Of two neighbours.
    """
    if not vectors:
        return []
    unit, near = _unit(vectors), np.zeros((len(vectors), len(vectors)), dtype=bool)
    for start in range(0, len(vectors), _BLOCK):
        near[start : start + _BLOCK] = unit[start : start + _BLOCK] @ unit.T >= least_cosine
    np.fill_diagonal(near, val=True)
    counts, waiting = near.sum(axis=1), np.ones(len(vectors), dtype=bool)
    around = _unit(others) if others else unit[:0]
    groups = []
    while waiting.any():
        leader = int(np.argmax(np.where(waiting, counts, -1)))
        members = np.flatnonzero(near[leader] & waiting)
        waiting[members] = False
        counts -= near[:, members].sum(axis=1)
        centre = _normalise(unit[members].mean(axis=0, keepdims=True))[0]
        beside = np.flatnonzero(around @ centre >= least_cosine + _CLOSER)
        groups.append(Grouped([leader, *(int(one) for one in members if one != leader)], [int(one) for one in beside]))
    return groups


def _unit(vectors: Sequence[bytes]) -> npt.NDArray[np.float32]:
    rows = np.frombuffer(b"".join(vectors), dtype="<f2").reshape(len(vectors), -1)
    return _normalise(rows.astype(np.float32))


def _normalise(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
