"""Vectors of a stand-in for an encoder."""

import zlib
from array import array
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mats.domain.text.words import words
from mats.ports import Vector


def vector_of(text: str, dimension: int) -> Vector:
    """A vector of length 1; as with an encoder, texts that share words are close, and no two are equal."""
    total = np.sum([_of_word(word, dimension) for word in words(text) or [""]], axis=0) + 0.5 * _of_word(
        text, dimension
    )
    return array("f", (total / np.linalg.norm(total)).astype(np.float32))


@lru_cache(maxsize=2_000)
def _of_word(word: str, dimension: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(zlib.crc32(word.encode())).standard_normal(dimension, dtype=np.float32)
