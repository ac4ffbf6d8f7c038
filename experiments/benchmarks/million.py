"""A million capabilities on one machine: start, latency, memory, and what searches miss.

Texts are composed of the words of two real registrations each, vectors of two real ones with noise. The registry is
kept in the user's cache, and filling it goes on where it was interrupted; it has only what answers are made from.
"""

import random
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.benchmarks.size import serve_apart
from experiments.data.enlarge import mix_words
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.entries import write
from mats.adapters.sqlite.index import SqliteIndex
from mats.bootstrap.local import DATABASE
from mats.bootstrap.models import user_cache
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import Profile, profile_of
from mats.evaluation.data.datasets import load, sets_in
from mats.evaluation.measures import SEED
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.models import cached_encoder
from mats.ports import Stored
from mats.settings import Settings

DOCUMENTS = 1_000_000
_QUERIES = 500
_PAGE = 1_000
_NOISE = 0.3
"""Length of what is added to a vector of length 1."""


@dataclass(frozen=True, slots=True)
class Originals:
    """Real profiles and their vectors, one a row; documents are composed of two of them."""

    profiles: Sequence[Profile]
    vectors: npt.NDArray[np.float32]
    encoder: str

    def page(self, start: int) -> Iterator[Stored]:
        """1,000 documents from this one on; the same at every call."""
        chance, words = np.random.default_rng((SEED, start)), random.Random(start)
        others = chance.integers(len(self.profiles), size=_PAGE)
        ones = np.arange(start, start + _PAGE) % len(self.profiles)
        share = chance.uniform(0.5, 1, size=(_PAGE, 1)).astype(np.float32)
        mixed = share * self.vectors[ones] + (1 - share) * self.vectors[others]
        noise = chance.standard_normal(mixed.shape, np.float32) * (_NOISE / mixed.shape[1] ** 0.5)
        vectors = _unit(_unit(mixed) + noise)
        pairs = zip(ones.tolist(), others.tolist(), vectors, strict=True)
        for number, (one, other, vector) in enumerate(pairs, start):
            profile = self._compose(self.profiles[one], self.profiles[other], number, words)
            yield Stored(profile, array("f", vector.tobytes()))

    def _compose(self, one: Profile, other: Profile, number: int, words: random.Random) -> Profile:
        """A profile in the namespace of the first one, which holds some seventy of each of its own."""
        described, added = (each.source.description if each.source else "" for each in (one, other))
        text = mix_words(described, added, words)
        update = {
            "name": f"{one.name}-{number}",
            "rev": 1,
            "encoder": self.encoder,
            "source": one.source and one.source.model_copy(update={"description": text}),
            "enrichment": one.enrichment.model_copy(update={"summary": text[:200]}),
        }
        return one.model_copy(update=update)


def million(data: Path, settings: Settings) -> dict[str, Any]:
    """As `scale`, at a million capabilities."""
    return measure_size(data, settings, DOCUMENTS, user_cache() / "benchmark-million")


def measure_size(data: Path, settings: Settings, documents: int, home: Path) -> dict[str, Any]:
    """The benchmark with so many documents, in a folder that may have some of them."""
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder to measure: unset MATS_ENCODER=none")
    registrations = [each for name in sets_in(data) for each in load(data / name).registrations]
    profiles = [profile_of(each, origin="") for each in {each.id: each for each in registrations}.values()]
    encoded = encoder.encode_documents([embedded_text(profile) for profile in profiles])
    vectors = np.array([vector or np.zeros(encoder.dimension) for vector in encoded], np.float32)
    fill(home / DATABASE, Originals(profiles, vectors, encoder.name), documents)
    texts = [query.text[:LONGEST_QUERY] for query in load(data / "tools").queries[:_QUERIES]]
    served = serve_apart(replace(settings, home=home), texts)
    return {"documents": documents, "originals": len(profiles), **served}


def fill(file: Path, originals: Originals, documents: int) -> None:
    """Index what is missing; raises SystemExit if the file has more, or was filled by another release."""
    with closing(Database(file)) as database:
        [(done, sample)] = database.rows("SELECT count(*), (SELECT profile FROM entries WHERE row = 1) FROM entries")
        expected = next(originals.page(0)).profile.model_dump_json()
        if done > documents or sample not in (None, expected):
            raise SystemExit(f"{file.parent} has another registry: remove it")
        if not done:
            SqliteIndex(database)  # notes that the terms of all entries are up to date: there are none
        for start in range(done, documents, _PAGE):
            with database.writing() as connection:
                for stored in originals.page(start):
                    write(connection, stored)
            sys.stderr.write(f"\r{start + _PAGE:,} of {documents:,} indexed")
        sys.stderr.write("\n")


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
