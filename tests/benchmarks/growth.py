"""The index as it grows: our share of an answer, size, memory, time to fill and recall, as floats and quantised.

Each size is measured beside the next smaller one, in one node and in turns, so that their ratio holds on a busy
machine. Figures are saved when they are measured; a run that was interrupted goes on where it stopped.
"""

import os
import random
import shutil
import sys
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.adapters.opensearch.mapping import index_body, write_alias
from mats.bootstrap.cloud import cloud_system
from mats.bootstrap.models import user_cache
from mats.domain.query import Filter
from mats.evaluation.data.synthetic import each_registration, registrations
from mats.evaluation.measures import SEED
from mats.evaluation.reporting.results import RESULTS, provenance, read_results, write_results
from mats.evaluation.systems.models import cached_encoder
from mats.ports import Target
from mats.settings import Settings
from mats.usecases.discover import Discover
from mats.usecases.stages import Budgets
from tests.benchmarks.node_stats import NodeStats
from tests.benchmarks.opensearch import REGION, node
from tests.benchmarks.own_share import PAGE, WARM_UP, WRITERS, DenseEncoder, Latencies, fill, uncached
from tests.benchmarks.processes import module_process
from tests.benchmarks.shaped_vectors import DESCRIPTION, ShapedVectors, shaped

SIZES = (10_000, 100_000, 300_000, 1_000_000)
COMPONENTS = (1_024, 256)
ENCODINGS: Mapping[str, Mapping[str, Any]] = {
    "float": {},
    "7 bits": {"parameters": {"encoder": {"name": "sq", "parameters": {"bits": 7}}}},
}
NAME = "aws-growth"
_TITAN = "amazon.titan-embed-text-v2:0"
_QUERIES = 400
_RECALL_QUERIES = 200
_TURN = 10
_RERANK_MS = 50
_DEPTH = 200
_HEAP = "3g"
_PATIENT = Budgets(encode_ms=10_000, retrieve_ms=60_000, rerank_ms=10_000)
_LOAD_S = 600


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a run measures; `again`: also what has been measured before."""

    sizes: Sequence[int] = SIZES
    components: Sequence[int] = COMPONENTS
    encodings: Sequence[str] = tuple(ENCODINGS)
    again: bool = False


def growth(data: Path, settings: Settings, chosen: Chosen) -> dict[str, Any]:
    """Measure every chosen size that has no figures yet, and save each."""
    rows = _saved()
    wanted = {
        dimension: [size for size in sorted(chosen.sizes) if chosen.again or _missing(rows, size, dimension, chosen)]
        for dimension in chosen.components
    }
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder for vectors of real texts: unset MATS_ENCODER=none")
    documents, queries = shaped(data, encoder, _QUERIES)
    for dimension, sizes in wanted.items():
        folder = user_cache() / f"growth-{dimension}"
        for size in sizes:
            before = max((other for other in chosen.sizes if other < size), default=None)
            with _bench(settings, folder, ShapedVectors(documents, queries, dimension), chosen.encodings) as bench:
                measured = bench.measure(size, before)
            new = {_key(row) for row in measured}
            rows = [row for row in rows if _key(row) not in new] + measured
            rows.sort(key=lambda row: (-row["dimension"], row["documents"], row["encoding"]))
            write_results(NAME, _results(rows))
        shutil.rmtree(folder, ignore_errors=True)
    return _results(rows)


def _key(row: Mapping[str, Any]) -> tuple[int, int, str]:
    return row["documents"], row["dimension"], row["encoding"]


def _results(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"vectors": DESCRIPTION, "heap": _HEAP, "rows": list(rows)}


def _saved() -> list[Any]:
    path = RESULTS / f"{NAME}.json"
    return list(read_results(path)["rows"]) if path.exists() else []


def _missing(rows: Sequence[Mapping[str, Any]], size: int, dimension: int, chosen: Chosen) -> bool:
    there = {row["encoding"] for row in rows if (row["documents"], row["dimension"]) == (size, dimension)}
    return not there.issuperset(chosen.encodings)


@contextmanager
def _bench(settings: Settings, folder: Path, vectors: ShapedVectors, encodings: Sequence[str]) -> Iterator["_Bench"]:
    """A node over the data of earlier runs, and stand-ins for the models."""
    arguments = ("--port", "0", "--delay-ms", str(_RERANK_MS))
    with (
        node(_HEAP, kept=folder) as url,
        module_process("tests.servers.bedrock", *arguments, env={}) as (_, stand_in),
    ):
        os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = stand_in
        yield _Bench(
            replace(settings, index_endpoint=url, region=REGION, bedrock=True, encoder=_TITAN),
            folder,
            vectors,
            encodings,
        )


@dataclass(frozen=True)
class _Bench:
    settings: Settings
    folder: Path
    vectors: ShapedVectors
    encodings: Sequence[str]

    def measure(self, size: int, before: int | None) -> list[dict[str, Any]]:
        """Figures of one size in every encoding."""
        filled = {encoding: self._filled(size, encoding) for encoding in self.encodings}
        names = {(size, encoding): name for encoding, (name, _) in filled.items()}
        if before:
            names |= {(before, encoding): self._filled(before, encoding)[0] for encoding in self.encodings}
        nearest = self.vectors.nearest(size, _DEPTH)[:_RECALL_QUERIES]
        states = {"as_filled": self._state(names, size, nearest)}
        for name in names.values():
            sys.stderr.write(f"merging {name}\n")
            self.domain.merge(name)
        states["merged"] = self._state(names, size, nearest)
        about = {
            "documents": size,
            "dimension": self.vectors.dimension,
            "java": NodeStats(self.settings.index_endpoint).java(),
        }
        return [
            {
                **about, "encoding": encoding, "commit": provenance()["commit"], "fill_s": filled[encoding][1],
                **{state: figures[encoding] for state, figures in states.items()},
            }
            for encoding in self.encodings
        ]  # fmt: skip

    @cached_property
    def domain(self) -> Domain:
        return Domain(self.settings.index_endpoint, region=REGION, read_s=_LOAD_S)

    def _filled(self, size: int, encoding: str) -> tuple[str, float | None]:
        """An index of this size, and the seconds it took to fill; None if that was interrupted."""
        name = f"growth-{size}-{encoding.replace(' ', '-')}"
        body = index_body(self.vectors.dimension, aliases=[write_alias(name)], replicas="0-1", refresh="1s")
        body["mappings"]["properties"]["vector"]["method"] |= ENCODINGS[encoding]
        self.domain.create(name, body)
        index = OpenSearchIndex(self.domain, lambda: [Target(name, _TITAN)], encoder=_TITAN, read=name)
        there, seconds = sum(1 for _ in index.revisions()), self.folder / f"{name}.seconds"
        started = time.monotonic()
        if there < size:
            fill(
                index,
                each_registration(size),
                _TITAN,
                lambda start, texts: self.vectors.of_documents(start, len(texts)),
                start=max(0, there - there % PAGE - WRITERS * PAGE),
            )
            if not there:
                seconds.write_text(str(round(time.monotonic() - started, 1)))
        return name, float(seconds.read_text()) if seconds.exists() else None

    def _state(self, names: Mapping[tuple[int, str], str], size: int, nearest: Any) -> dict[str, dict[str, Any]]:
        """Figures by encoding: of answers, asked in turns, of the index, and recall."""
        stats = NodeStats(self.settings.index_endpoint)
        asked = self._in_turns(names, stats)
        found: dict[str, dict[str, Any]] = {}
        for encoding in self.encodings:
            name = names[size, encoding]
            found[encoding] = {
                **asked[size, encoding],
                **stats.of_index(name),
                **self._recall(name, nearest),
            }
            for (other, same), figures in asked.items():
                if other != size and same == encoding:
                    ratio = found[encoding]["ms"]["p50"] / figures["ms"]["p50"]
                    found[encoding]["beside"] = {"documents": other, "p50_ratio": round(ratio, 3), "ms": figures["ms"]}
        return found

    def _in_turns(
        self, names: Mapping[tuple[int, str], str], stats: NodeStats
    ) -> dict[tuple[int, str], dict[str, Any]]:
        texts = self._texts()
        systems = {key: self._discover(name, texts) for key, name in names.items()}
        latencies = {key: Latencies(_RERANK_MS) for key in names}
        cpu_ms = dict.fromkeys(names, 0.0)
        heap: list[float] = []
        for start in range(0, len(texts), _TURN):
            for key, discover in systems.items():
                patient = replace(discover, stages=replace(discover.stages, budgets=_PATIENT))
                warm = start < WARM_UP
                before = stats.cpu_ms()
                for text in texts[start : start + _TURN]:
                    (Latencies(_RERANK_MS) if warm else latencies[key]).ask(patient if warm else discover, text)
                cpu_ms[key] += 0 if warm else stats.cpu_ms() - before
            heap.append(stats.heap_gb())
            sys.stderr.write(f"\rasked {start + _TURN} of {len(texts)} queries of each of {len(names)} indices")
        sys.stderr.write("\n")
        return {
            key: {
                **measured.summary(),
                "node_cpu_ms": round(cpu_ms[key] / max(1, len(measured.times)), 1),
                "heap_gb": {"least": min(heap), "most": max(heap)},
            }
            for key, measured in latencies.items()
        }

    def _texts(self) -> list[str]:
        documents, chance = registrations(10_000), random.Random(SEED)
        return [chance.choice(documents).description[:200] for _ in range(_QUERIES)]

    def _discover(self, name: str, texts: Sequence[str]) -> Discover:
        cloud = cloud_system(self.settings)
        if cloud.models.encoder is None:
            raise SystemExit("no encoder: unset MATS_ENCODER=none")
        asked = dict(zip(texts, self.vectors.asked, strict=True))
        dense = DenseEncoder(cloud.models.encoder, lambda text: array("f", asked[text]))
        index = OpenSearchIndex(Domain(self.settings.index_endpoint, region=REGION), list, encoder=_TITAN, read=name)
        return uncached(cloud.discover, index, dense)

    def _recall(self, name: str, nearest: Any) -> dict[str, float]:
        """The share of the exact nearest that the index finds."""
        index = OpenSearchIndex(self.domain, list, encoder=_TITAN, read=name)
        shares: dict[int, list[float]] = {15: [], _DEPTH: []}
        for query, exact in zip(self.vectors.asked, nearest, strict=False):
            found = [int(hit.id.rpartition("_")[2]) for hit in index.neural(array("f", query), Filter(), depth=_DEPTH)]
            for depth, of_queries in shares.items():
                of_queries.append(len(set(found[:depth]) & set(exact[:depth].tolist())) / depth)
        return {f"recall@{depth}": round(float(np.mean(each)), 4) for depth, each in shares.items()}
