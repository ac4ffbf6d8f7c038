"""Benchmark of what learning costs an answer: reports, remembered requests and receipts on one machine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.benchmarks.interleaved import Answering, compare_latencies
from mats.adapters.sqlite.memory import SqliteMemory
from mats.bootstrap.local import LocalSystem
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt, pack_vector
from mats.evaluation.data.datasets import JudgedQuery, load
from mats.evaluation.measures import SEED
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of, without_timeouts
from mats.ports import Encoder
from mats.settings import Settings
from mats.usecases.receipts import LeaveReceipt
from mats.usecases.retrieve import Recall

MEMORIES = 10_000
QUERIES = 1_000
_CALLERS = 100
_NOISE = 0.5
"""Length of what is added to the vector of a query, of length 1: the cosine of the two is about 0.9."""


def memory(data: Path, settings: Settings) -> dict[str, Any]:
    """Latency of `discover` over the tools, encoder included, with more and more of what learning does."""
    return measure_memory(data, settings, memories=MEMORIES, queries=QUERIES)


def measure_memory(data: Path, settings: Settings, *, memories: int, queries: int) -> dict[str, Any]:
    """The benchmark with so many memories and queries."""
    dataset, encoder = load(data / "tools"), cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder, and so no memory to measure: unset MATS_ENCODER=none")
    with registry_of(dataset.registrations, settings, encoder=encoder) as local:
        registered = {registration.id for registration in dataset.registrations}
        fill_memory(local, [query for query in dataset.queries if query.relevant <= registered], encoder, memories)
        texts = [query.text for query in dataset.queries[:queries]]
        flush = local.stores.receipts.flush if local.stores.receipts else None
        return {
            "documents": len(dataset.registrations),
            "memories": memories,
            "encoder": encoder.name,
            "variants": compare_latencies(variants(local, memories), texts, between=flush),
        }


def variants(local: LocalSystem, memories: int) -> Mapping[str, Answering]:
    """The pipeline without timeouts: without learning, without and with what the memory has, and with receipts."""
    shipped = without_timeouts(local.discover)
    recall = shipped.retrieve.recall
    if recall is None or local.stores.receipts is None:
        raise SystemExit("nothing is learned: unset MATS_LEARNING and MATS_RECEIPT_DAYS")
    nothing = SqliteMemory(local.stores.database, encoder="none")

    def remembering(one: Recall | None) -> Answering:
        return replace(shipped, retrieve=replace(shipped.retrieve, recall=one))

    return {
        "without learning": replace(shipped, tallies=None, retrieve=replace(shipped.retrieve, recall=None)),
        "no memories": remembering(replace(recall, memory=nothing)),
        f"{memories:,} memories": shipped,
        f"{memories:,} memories and receipts": partial(shipped, receipts=LeaveReceipt(later=local.stores.receipts)),
    }


def fill_memory(local: LocalSystem, queries: Sequence[JudgedQuery], encoder: Encoder, count: int) -> None:
    """Report successes of requests like these, by a hundred callers in turn."""
    for receipt in receipts_like(queries, encoder, count, local.clock.now()):
        outcomes = tuple(Outcome(id, Event.SUCCEEDED) for id in receipt.shown)
        feedback = Feedback(query_id=receipt.query_id, caller=receipt.caller, outcomes=outcomes)
        local.stores.outcomes.record(receipt, feedback, receipt.at)


def receipts_like(queries: Sequence[JudgedQuery], encoder: Encoder, count: int, at: str) -> Iterator[Receipt]:
    """Receipts of requests like these, by a hundred callers in turn, which showed what is right."""
    rng, vectors = np.random.default_rng(SEED), dict[str, npt.NDArray[np.float32]]()
    for number in range(count):
        query = queries[number % len(queries)]
        if query.text not in vectors:
            vectors[query.text] = np.asarray(encoder.encode_query(query.text), np.float32)
        noise = rng.standard_normal(encoder.dimension)
        vector = vectors[query.text] + _NOISE * noise / np.linalg.norm(noise)
        yield Receipt(
            query_id=f"{number:032x}",
            text=query.text,
            caller=f"caller {number % _CALLERS}",
            audiences=frozenset(),
            at=at,
            shown=tuple(sorted(query.relevant)),
            encoder=encoder.name,
            vector=pack_vector((vector / np.linalg.norm(vector)).tolist()),
        )
