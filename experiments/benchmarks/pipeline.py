"""Benchmarks of the pipeline without a reranker."""

import time
from pathlib import Path
from typing import Any

from experiments.benchmarks.serving import latencies, resident_mb
from mats.bootstrap import models
from mats.domain.ranking.query import Query
from mats.edge.schema import Answer
from mats.evaluation.data.datasets import load, sample
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings


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
    encoder = models.load_encoder(settings)
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
    dataset, encoder = sample(), models.load_encoder(settings)
    with registry_of(dataset.registrations, settings, encoder=encoder, trust=dataset.trust) as local:
        local.discover(query)
        shortlist = local.discover(query)
    return {"query": query.model_dump(exclude_defaults=True), "answer": Answer.of(shortlist).model_dump(mode="json")}
