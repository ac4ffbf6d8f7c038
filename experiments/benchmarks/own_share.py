"""Our own share of an online answer: all but the wait for the reranker."""

import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from mats.adapters.opensearch.index import OpenSearchIndex
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import profile_of
from mats.domain.ranking.query import Query
from mats.ports import Encoder, SearchIndex, Stored, Vector
from mats.usecases.discover import Discover

PAGE = 1_000
WARM_UP = 60
WRITERS = 2
"""Pages on their way at once."""


@dataclass(frozen=True, slots=True)
class DenseEncoder:
    """An encoder's round trip with other vectors: those of the stand-in are sparse."""

    encoder: Encoder
    vector_of: Callable[[str], Vector]

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_query(self, text: str) -> Vector:
        self.encoder.encode_query(text)
        return self.vector_of(text)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        return [self.vector_of(text) for text in texts]


def fill(
    index: OpenSearchIndex,
    documents: Iterable[Registration],
    encoder: str,
    vectors_of: Callable[[int, Sequence[str]], Sequence[Vector]],
    *,
    start: int = 0,
) -> None:
    """Index registrations from `start` on, with the vectors of their texts; `vectors_of` gets a page's start, too."""

    def put(at: int, page: Sequence[Registration]) -> int:
        profiles = [profile_of(registration, origin="") for registration in page]
        vectors = vectors_of(at, [embedded_text(profile) for profile in profiles])
        index.put(
            [
                Stored(profile.model_copy(update={"rev": 1, "encoder": encoder}), vector)
                for profile, vector in zip(profiles, vectors, strict=True)
            ]
        )
        return at + len(page)

    rest = islice(documents, start, None)
    pages = enumerate(iter(lambda: list(islice(rest, PAGE)), []))
    with ThreadPoolExecutor(WRITERS) as writers:
        while under_way := [
            writers.submit(put, start + number * PAGE, page) for number, page in islice(pages, WRITERS)
        ]:
            done = [each.result() for each in under_way]
            sys.stderr.write(f"\r{index.read}: {max(done):,} filled")
    index.domain.refresh(index.read)
    sys.stderr.write("\n")


def uncached(shipped: Discover, index: SearchIndex, encoder: Encoder) -> Discover:
    """Discovery as shipped, over an index, without the cache of query vectors."""
    return replace(shipped, retrieve=replace(shipped.retrieve, index=index, encoder=encoder, vectors=None))


@dataclass(slots=True)
class Latencies:
    """Latencies of answers without the reranker, and of each stage, in milliseconds."""

    reranker_ms: float
    times: list[float] = field(default_factory=list)
    stages: dict[str, list[float]] = field(default_factory=dict)
    degraded: int = 0
    failed: int = 0

    def ask(self, discover: Discover, text: str) -> None:
        """Ask one query and note how long its answer took."""
        try:
            shortlist = discover(Query(query=text))
        except DependencyFailed:
            self.failed += 1
            return
        self.times.append(shortlist.trace.took_ms["total"] - self.reranker_ms)
        self.degraded += bool(shortlist.degraded)
        for stage, ms in shortlist.trace.took_ms.items():
            self.stages.setdefault(stage, []).append(ms)

    def summary(self) -> dict[str, Any]:
        """Percentiles."""
        return {
            "queries": len(self.times),
            "degraded": self.degraded,
            "failed": self.failed,
            "ms": _percentiles(self.times, (50, 95, 99)),
            "stages_ms": {stage: _percentiles(ms, (50, 99)) for stage, ms in self.stages.items()},
        }


def _percentiles(values: Sequence[float], which: Sequence[int]) -> dict[str, float]:
    return {f"p{p}": round(float(np.percentile(values, p)), 1) for p in which}
