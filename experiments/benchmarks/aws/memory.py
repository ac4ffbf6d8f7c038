"""Benchmark of what the memory costs an answer over OpenSearch."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from experiments.benchmarks.aws.opensearch import REGION, index_on, node
from experiments.benchmarks.interleaved import Answering, compare_latencies
from experiments.benchmarks.memory import MEMORIES, QUERIES, receipts_like
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.memory import MEMORY, OpenSearchMemory
from mats.bootstrap.cloud import cloud_system
from mats.domain.learning.outcome import Event, Receipt, ReportedAnswer
from mats.domain.learning.remembered import Remembered, remember
from mats.evaluation.data.datasets import load
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of, without_timeouts
from mats.settings import Settings

_PAGE = 1_000
_READ_S = 30


def memory(data: Path, settings: Settings) -> dict[str, Any]:
    """Latency of `discover` over the tools with the local encoder, without and with remembered requests."""
    dataset, encoder = load(data / "tools"), cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder, and so no memory to measure: unset MATS_ENCODER=none")
    ids = [registration.id for registration in dataset.registrations]
    served = [query for query in dataset.queries if query.relevant <= {*ids}]
    with (
        registry_of(dataset.registrations, settings, encoder=encoder) as local,
        node("2g", settings.index_endpoint) as url,
        index_on(url, encoder, read_s=_READ_S) as index,
    ):
        for start in range(0, len(ids), _PAGE):
            index.put(list(local.stores.profiles.get(ids[start : start + _PAGE]).values()))
        domain = Domain(url, region=REGION, read_s=_READ_S)
        remembered = OpenSearchMemory(domain=domain, encoder=encoder.name, dimension=encoder.dimension)
        for page in _pages(_memories(receipts_like(served, encoder, MEMORIES, local.clock.now()))):
            remembered.remember(page, version=1)
        index.domain.merge("capabilities")
        for alias in ("capabilities", MEMORY):
            domain.refresh(alias)
        cloud = cloud_system(replace(settings, index_endpoint=url, region=REGION), encoder=encoder)
        shipped = without_timeouts(cloud.discover)
        recall = shipped.retrieve.recall
        if recall is None:
            raise SystemExit("nothing is learned: unset MATS_LEARNING")

        def remembering(memory: OpenSearchMemory | None) -> Answering:
            one = replace(recall, memory=memory) if memory else None
            return replace(shipped, retrieve=replace(shipped.retrieve, index=index, recall=one))

        variants = {"without memory": remembering(None), f"{MEMORIES:,} memories": remembering(remembered)}
        latencies = compare_latencies(variants, [query.text for query in dataset.queries[:QUERIES]])
    return {"documents": len(ids), "memories": MEMORIES, "encoder": encoder.name, "variants": latencies}


def _memories(receipts: Iterable[Receipt]) -> Iterator[Remembered]:
    for receipt in receipts:
        answer = ReportedAnswer(receipt=receipt, events=dict.fromkeys(receipt.shown, frozenset({Event.SUCCEEDED})))
        if memory := remember(answer):
            yield memory


def _pages(memories: Iterator[Remembered]) -> Iterator[list[Remembered]]:
    while page := list(islice(memories, _PAGE)):
        yield page
