"""Synthetic vectors shaped as real ones, in any number and any dimension, and the exact nearest neighbours among them.

Each is a mixture of the vectors of two real descriptions with noise added. Fewer components than the real vectors have
are their principal ones, as an encoder that can be cut keeps what matters most. A rotation spreads all of them over the
components, because no component of a usual encoder has much more than its share, and quantisation depends on that.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import profile_of
from mats.evaluation.data.datasets import load
from mats.evaluation.measures import SEED
from mats.ports import Encoder, Vector

DESCRIPTION = (
    "mixtures of two MiniLM vectors of real descriptions, with noise of 0.3 of their length in 1,024 components, "
    "rotated at random; of 256 components: their 256 principal axes, rotated; queries are vectors of real "
    "queries, likewise"
)
_SETS = ("tools", "skills", "models", "agents")
_FULL = 1_024
_NOISE = 0.3
_PAGE = 1_000

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ShapedVectors:
    """Documents by their position, and queries; `documents` and `queries` are real vectors, one a row."""

    documents: Matrix
    queries: Matrix
    dimension: int

    @cached_property
    def _rotation(self) -> Matrix:
        """From real vectors to so many components: the principal axes, rotated at random."""
        _, axes = np.linalg.eigh(self.documents.T @ self.documents)
        kept = min(self.dimension, self.documents.shape[1])
        gaussian = np.random.default_rng(SEED).standard_normal((self.dimension, self.dimension))
        rotation = np.linalg.qr(gaussian)[0][:kept]
        return np.asarray(axes[:, ::-1][:, :kept] @ rotation, np.float32)

    @cached_property
    def _rotated(self) -> Matrix:
        return self.documents @ self._rotation

    def page(self, number: int) -> Matrix:
        """The vectors of 1,000 documents; the same at every call."""
        chance = np.random.default_rng((SEED, number))
        one, other = chance.integers(len(self.documents), size=(2, _PAGE))
        share = chance.uniform(0.5, 1, size=(_PAGE, 1)).astype(np.float32)
        return self._noisy(share * self._rotated[one] + (1 - share) * self._rotated[other], chance)

    @cached_property
    def asked(self) -> Matrix:
        """The vectors of the queries."""
        return self._noisy(self.queries @ self._rotation, np.random.default_rng(SEED))

    def _noisy(self, vectors: Matrix, chance: np.random.Generator) -> Matrix:
        noise = chance.standard_normal(vectors.shape, dtype=np.float32) * (_NOISE / _FULL**0.5)
        return _normalised(vectors + noise)

    def of_documents(self, start: int, count: int) -> Sequence[Vector]:
        """The vectors of documents of one page, from a multiple of 1,000 on."""
        return [array("f", row) for row in self.page(start // _PAGE)[:count]]

    def nearest(self, documents: int, depth: int) -> npt.NDArray[np.int64]:
        """Positions of the exact nearest of so many documents for each query, best first, one query a row."""
        best = np.empty((len(self.asked), 0), np.float32)
        ids = np.empty((len(self.asked), 0), np.int64)
        for start in range(0, documents, _PAGE):
            page = self.page(start // _PAGE)[: documents - start]
            best = np.hstack([best, self.asked @ page.T])
            ids = np.hstack([ids, np.broadcast_to(np.arange(start, start + len(page)), (len(self.asked), len(page)))])
            kept = np.argsort(-best, axis=1, kind="stable")[:, :depth]
            best, ids = np.take_along_axis(best, kept, 1), np.take_along_axis(ids, kept, 1)
        return ids


def shaped(data: Path, encoder: Encoder, queries: int) -> tuple[Matrix, Matrix]:
    """Real vectors of the judged sets: of descriptions, and of so many queries in random order."""
    sets = [load(data / name) for name in _SETS]
    texts = [embedded_text(profile_of(each, origin="")) for one in sets for each in one.registrations]
    asked = sorted({query.text for one in sets for query in one.queries})
    chosen = np.random.default_rng(SEED).permutation(len(asked))[:queries]
    return (
        np.array([vector for vector in encoder.encode_documents(texts) if vector is not None], np.float32),
        np.array([encoder.encode_query(asked[number]) for number in chosen], np.float32),
    )


def _normalised(vectors: Matrix) -> Matrix:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
