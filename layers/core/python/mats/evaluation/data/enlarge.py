"""A larger registry of real-shaped text: judged registrations, and copies of them with some words left out."""

import hashlib
import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mats.domain.index_fields import embedded_text
from mats.domain.profile import profile_of
from mats.domain.registration import Registration
from mats.ports import Encoder, Vector

LEFT_OUT = 0.15
"""Share of the words of a description that a copy leaves out."""
_MIXED = 0.35
"""Share of another original in the vector of a copy."""
_COPY = ".copy-"


def enlarge(registrations: Sequence[Registration], count: int, *, seed: int = 7) -> Sequence[Registration]:
    """Of each id one, then as many copies, in namespaces of their own, as it takes to be `count`."""
    originals = list({each.id: each for each in registrations}.values())[:count]
    chance = random.Random(seed)
    copies = [_copy(originals[n % len(originals)], n // len(originals), chance) for n in range(len(originals), count)]
    return [*originals, *copies]


def _copy(original: Registration, number: int, chance: random.Random) -> Registration:
    kept = [word for word in original.description.split() if chance.random() >= LEFT_OUT]
    namespace = f"{original.namespace}{_COPY}{number}"
    return original.model_copy(update={"namespace": namespace, "description": " ".join(kept)})


@dataclass(frozen=True, slots=True)
class CopyEncoder:
    """Encodes originals; the vector of a copy is composed of that of its original and that of another original.

    So filling a registry of any size takes no longer than encoding its originals, and all vectors are where those of
    real text are.
    """

    encoder: Encoder
    _rows: Mapping[bytes, int]
    """By the text of an original or a copy."""
    _vectors: npt.NDArray[np.float32]

    @classmethod
    def of(cls, encoder: Encoder, registrations: Sequence[Registration], *, seed: int = 7) -> "CopyEncoder":
        """For registrations that `enlarge` has made, originals first; encodes the originals."""
        texts = [embedded_text(profile_of(each, origin="")) for each in registrations]
        originals = sum(_COPY not in each.namespace for each in registrations)
        encoded = encoder.encode_documents(texts[:originals])
        vectors = np.array([vector or np.zeros(encoder.dimension) for vector in encoded], np.float32)
        chance = np.random.default_rng(seed)
        composed = vectors[np.arange(originals, len(texts)) % originals]
        composed += _MIXED * vectors[chance.integers(originals, size=len(composed))]
        composed /= np.linalg.norm(composed, axis=1, keepdims=True)
        rows = {_key(text): row for row, text in enumerate(texts)}
        return cls(encoder, rows, np.concatenate([vectors, composed]))

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_query(self, text: str) -> Vector:
        return self.encoder.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        return [array("f", self._vectors[self._rows[_key(text)]].tobytes()) for text in texts]


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
