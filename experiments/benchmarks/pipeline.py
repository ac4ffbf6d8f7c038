"""Benchmarks of the pipeline without a reranker."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.benchmarks.serving import latencies, resident_mb
from mats import bootstrap
from mats.domain.ranking.query import Query
from mats.edge.answers import Answer
from mats.evaluation.data.datasets import load, sample
from mats.evaluation.measures import estimate, per_query
from mats.evaluation.systems.base import LONGEST_QUERY, ask, run_of
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.workbench import registry_of
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
