"""The systems that are compared, each a value: a changed field of the production object, never a second pipeline."""

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from evaluation.baseline import PlainBm25
from evaluation.cache import CachedEncoder
from evaluation.datasets import Dataset, JudgedQuery
from evaluation.metrics import Run
from mats import bootstrap
from mats.bootstrap.local import Local
from mats.domain.capability import Id, Kind
from mats.domain.profile import Cause, Profile
from mats.domain.query import Filter, Query
from mats.domain.registration import Registration
from mats.ports import Change, Encoder, Hit, SearchIndex, Stored, Vector
from mats.settings import Settings
from mats.usecases.discover import Discover

_BATCH = 64
_LONGEST_QUERY = 2_000

Progress = Callable[[int], None]


def unheard(count: int) -> None:
    """Progress nobody listens to."""


class Retriever(StrEnum):
    """What can be evaluated without an LLM."""

    BM25 = "bm25"
    """Plain BM25, the baseline."""
    LEXICAL = "lexical"
    """Our fielded BM25 alone."""
    NEURAL = "neural"
    """Our k-NN alone."""
    HYBRID = "hybrid"
    """Both, fused: the first stage as it is shipped."""


@dataclass(frozen=True, slots=True)
class WithoutWords:
    """An index whose lexical side finds nothing."""

    index: SearchIndex

    @property
    def name(self) -> str:
        """The index's own."""
        return self.index.name

    def put(self, entries: Sequence[Stored]) -> None:
        """The index's own."""
        self.index.put(entries)

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """Nothing."""
        return []

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """The index's own."""
        return self.index.neural(vector, admitted, depth=depth)

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        """Nothing: the signal is absent."""
        return {}

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        """The index's own."""
        return self.index.cosine_of(vector, ids)

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        """The index's own."""
        return self.index.fetch(ids)

    def revisions(self) -> Iterator[tuple[Id, int, bool]]:
        """The index's own."""
        return self.index.revisions()

    def purge(self, ids: Collection[Id]) -> None:
        """The index's own."""
        self.index.purge(ids)


def variant(discover: Discover, retriever: Retriever) -> Discover:
    """The production object with one side of retrieval taken away, or as it is."""
    match retriever:
        case Retriever.LEXICAL:
            return replace(discover, encoder=None)
        case Retriever.NEURAL:
            return replace(discover, index=WithoutWords(discover.index))
        case _:
            return discover


@contextmanager
def registry_of(
    registrations: Sequence[Registration], settings: Settings, *, encoder: Encoder | None, progress: Progress = unheard
) -> Iterator[Local]:
    """A registry in a folder that is gone afterwards, filled through the production path."""
    with tempfile.TemporaryDirectory(prefix="mats-evaluate-") as folder:
        local = Local(replace(settings, home=Path(folder)), encoder=encoder)
        for start in range(0, len(registrations), _BATCH):
            batch = registrations[start : start + _BATCH]
            local.registry.put(batch)
            local.enrich([Change(r.id, Cause(event_id="evaluation", time=local.clock.now())) for r in batch])
            progress(len(batch))
        yield local
        local.close()


def cached(settings: Settings) -> Encoder | None:
    """The encoder of these settings, remembering documents; none if there is none."""
    encoder = bootstrap.encoder(settings)
    return CachedEncoder(encoder, settings.cache or bootstrap.user_cache()) if encoder else None


def run_discover(
    discover: Discover, queries: Sequence[JudgedQuery], *, kinds: Sequence[Kind] = (), progress: Progress = unheard
) -> dict[str, Sequence[Id]]:
    """What a system answers to every query: its whole shortlist, in order."""
    run: dict[str, Sequence[Id]] = {}
    for query in queries:
        shortlist = discover(Query(query=query.text[:_LONGEST_QUERY], kinds=tuple(kinds)))
        run[query.id] = [result.candidate.profile.id for result in shortlist.ranked]
        progress(1)
    return run


def run_plain(dataset: Dataset, k: int, *, progress: Progress = unheard) -> Run:
    """What plain BM25 answers to every query."""
    plain = PlainBm25(dataset.registrations)
    run: dict[str, Sequence[Id]] = {}
    for query in dataset.queries:
        run[query.id] = plain.search(query.text, k)
        progress(1)
    return run
