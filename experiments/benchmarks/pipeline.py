"""Benchmarks of the pipeline without a reranker, and of the encoder."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks.serving import latencies, resident_mb
from mats import bootstrap
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import profile_of
from mats.domain.ranking.query import Query
from mats.edge.answers import Answer
from mats.evaluation.data.datasets import load, sample
from mats.evaluation.measures import estimate, per_query
from mats.evaluation.percentiles import percentiles
from mats.evaluation.systems.base import LONGEST_QUERY, ask, run_of
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.workbench import registry_of
from mats.ports import Encoder
from mats.settings import Settings
from mats.usecases.discover import Discover


def latency(data: Path, settings: Settings) -> dict[str, Any]:
    """Latency of `discover` over the tools, in process, one query at a time, encoder included."""
    dataset = load(data / "tools")
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        return {
            "documents": len(dataset.registrations),
            **latencies(local.discover, [query.text[:LONGEST_QUERY] for query in dataset.queries]),
        }


def import_(data: Path, settings: Settings) -> dict[str, Any]:
    """Throughput and memory of registering and indexing the tools, encoder included, without a cache."""
    dataset = load(data / "tools")
    encoder = bootstrap.load_encoder(settings)
    peaks: list[int] = []
    began = time.perf_counter()
    with registry_of(dataset.registrations, settings, encoder=encoder, progress=lambda _: peaks.append(resident_mb())):
        seconds = time.perf_counter() - began
    return {
        "documents": len(dataset.registrations),
        "seconds": round(seconds, 1),
        "per_second": round(len(dataset.registrations) / seconds, 1),
        "resident_mb": {"at_a_tenth": peaks[len(peaks) // 10], "at_the_end": peaks[-1]},
    }


def encoders(data: Path, settings: Settings) -> dict[str, Any]:
    """The local encoder in both precisions: documents per second, latency of a query, cosine to float32."""
    dataset = load(data / "tools")
    texts = [embedded_text(profile_of(r, origin="")) for r in dataset.registrations[::10]]
    queries = [query.text[:LONGEST_QUERY] for query in dataset.queries[:200]]
    exact = np.array(_encoder(settings, "fp32").encode_documents(texts))
    results = {}
    for precision in ("fp32", "int8"):
        encoder = _encoder(settings, precision)
        began = time.perf_counter()
        vectors = np.array(encoder.encode_documents(texts))
        seconds = time.perf_counter() - began
        cosines = (vectors * exact).sum(axis=1)
        results[precision] = {
            "documents_per_second": round(len(texts) / seconds, 1),
            "query_ms": percentiles(_query_ms(encoder, queries), 50, 95),
            "cosine_to_fp32": {"mean": round(float(cosines.mean()), 4), "least": round(float(cosines.min()), 4)},
        }
    return {"documents": len(texts), "queries": len(queries), "encoders": results}


def _encoder(settings: Settings, precision: str) -> Encoder:
    encoder = bootstrap.load_encoder(replace(settings, encoder_precision=precision))
    if encoder is None:
        raise SystemExit("no encoder to measure: unset MATS_ENCODER=none")
    return encoder


def _query_ms(encoder: Encoder, queries: Sequence[str]) -> list[float]:
    times = []
    for query in queries:
        began = time.perf_counter()
        encoder.encode_query(query)
        times.append((time.perf_counter() - began) * 1000)
    return times


def answer(data: Path, settings: Settings) -> dict[str, Any]:
    """The answer to the README's query over the sample registry."""
    query = Query(query="turn a street address into coordinates", limit=2, explain=True)
    with _sample_registry(settings) as discover:
        discover(query)
        shortlist = discover(query)
    return {"query": query.model_dump(exclude_defaults=True), "answer": Answer.of(shortlist).model_dump(mode="json")}


def sample_queries(data: Path, settings: Settings) -> dict[str, Any]:
    """Measures of the sample's queries, and the verdicts of those with and without relevant capabilities."""
    judged = sample().queries
    served, unserved = [q for q in judged if q.relevant], [q for q in judged if not q.relevant]
    with _sample_registry(settings) as discover:
        values = per_query(run_of(ask(shortlist_system(discover), served)), served)
        verdicts = {
            name: Counter(str(discover(Query(query=query.text)).verdict) for query in queries)
            for name, queries in (("served", served), ("unserved", unserved))
        }
    return {
        "queries": len(judged),
        "measures": {measure: asdict(estimate(value)) for measure, value in values.items()},
        "verdicts": {name: dict(sorted(counts.items())) for name, counts in verdicts.items()},
    }


@contextmanager
def _sample_registry(settings: Settings) -> Iterator[Discover]:
    dataset, encoder = sample(), bootstrap.load_encoder(settings)
    with registry_of(dataset.registrations, settings, encoder=encoder, trust=dataset.trust) as local:
        yield local.discover
