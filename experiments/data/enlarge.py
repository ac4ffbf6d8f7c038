"""Registries of another size: a part of a judged set, or judged registrations beside composed ones.

A composed registration has words of two judged ones, so its text is shaped as real text is.
"""

import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import profile_of
from mats.domain.search.lookups import Vector
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import SEED
from mats.ports import Encoder
from mats.usecases.models import WrappedEncoder

_KEPT = 0.6
"""Share of the words of a description that a composed one keeps; it has the other words of another description."""
_MIXED = 0.35  # Share of the vector of that other one in the vector of a composed registration
_COPY, _SEED = ".copy-", 7


def enlarge(registrations: Sequence[Registration], count: int) -> Sequence[Registration]:
    """Of each id one, then as many composed ones, in namespaces of their own, as it takes to be `count`."""
    originals = list({each.id: each for each in registrations}.values())[:count]
    chance = random.Random(_SEED)
    composed = [
        _compose(originals[n % len(originals)], chance.choice(originals), n // len(originals), chance)
        for n in range(len(originals), count)
    ]
    return [*originals, *composed]


def dense_slice(dataset: Dataset, size: int) -> Dataset:
    """A seeded part of `size` capabilities, two thirds of them relevant to its queries, which have all they ask for."""
    queries = list(dataset.queries)
    random.Random(SEED).shuffle(queries)
    registered = {registration.id: registration for registration in dataset.registrations}
    wanted: dict[Id, None] = {}
    asked: list[JudgedQuery] = []
    for query in queries:
        if len(wanted) < size * 2 // 3 and query.relevant <= registered.keys():
            asked.append(query)
            wanted |= dict.fromkeys(sorted(query.relevant))
    wanted |= dict.fromkeys([id for id in registered if id not in wanted][: size - len(wanted)])
    return replace(dataset, registrations=[registered[id] for id in wanted], queries=asked)


def is_original(registration: Registration) -> bool:
    """True if a registration of `enlarge` is not composed."""
    return _COPY not in registration.namespace


def _compose(one: Registration, other: Registration, number: int, chance: random.Random) -> Registration:
    kept = [word for word in one.description.split() if chance.random() < _KEPT]
    added = [word for word in other.description.split() if chance.random() >= _KEPT]
    update = {
        "namespace": f"{one.namespace}{_COPY}{number}",
        "description": " ".join([*kept, *added]),
        "input_schema": other.input_schema,
        "examples": (),
    }
    return one.model_copy(update=update)


@dataclass(frozen=True, slots=True)
class ComposedEncoder(WrappedEncoder):
    """Encodes originals; the vector of a composed registration is mainly that of its original, and of another one.

    So filling a registry of any size takes no longer than encoding its originals, and all vectors are where those of
    real text are.
    """

    _rows: Mapping[str, int]  # By the text that is encoded
    _vectors: npt.NDArray[np.float32]

    @classmethod
    def of(cls, encoder: Encoder, registrations: Sequence[Registration]) -> "ComposedEncoder":
        """For registrations that `enlarge` has made, originals first; encodes the originals."""
        texts = [embedded_text(profile_of(each, origin="")) for each in registrations]
        originals = sum(map(is_original, registrations))
        encoded = encoder.encode_documents(texts[:originals])
        vectors = np.array([vector or np.zeros(encoder.dimension) for vector in encoded], np.float32)
        chance = np.random.default_rng(_SEED)
        composed = vectors[np.arange(originals, len(texts)) % originals]
        composed += _MIXED * vectors[chance.integers(originals, size=len(composed))]
        composed /= np.linalg.norm(composed, axis=1, keepdims=True)
        rows = {text: row for row, text in enumerate(texts)}
        return cls(encoder, rows, np.concatenate([vectors, composed]))

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        return [array("f", self._vectors[self._rows[text]].tobytes()) for text in texts]
