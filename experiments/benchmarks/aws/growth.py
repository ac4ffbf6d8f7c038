"""The index as it grows: our share of an answer, size, memory, time to fill and recall, as floats and quantised.

All indices of a dimension are asked in one node and in turns, so that their ratios hold on a busy machine: first as
single writes leave them, then copies that are merged. Figures are saved when those of a dimension are complete.
Indices can be made in advance, on a busy machine; a run that was interrupted while it made them goes on there.
"""

import math
import os
import random
import shutil
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks.aws.growth_indices import ENCODINGS, PATIENCE_S, GrowthIndices
from experiments.benchmarks.aws.node_stats import NodeStats
from experiments.benchmarks.aws.opensearch import REGION, node
from experiments.benchmarks.aws.shaped_vectors import DESCRIPTION, ShapedVectors, shaped
from experiments.benchmarks.own_share import WARM_UP, DenseEncoder, Latencies, uncached
from experiments.benchmarks.processes import module_process
from experiments.data.synthetic import registrations
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.bootstrap.cloud import cloud_system
from mats.bootstrap.models import user_cache
from mats.domain.ranking.query import Filter
from mats.evaluation.measures import SEED
from mats.evaluation.results import RESULTS, provenance, read_results, write_results
from mats.evaluation.systems.models import cached_encoder
from mats.settings import Settings
from mats.usecases.discover import Discover
from mats.usecases.stages import Budgets

SIZES = (10_000, 100_000, 300_000, 1_000_000)
COMPONENTS = (1_024, 256)
NAME = "aws-growth"
_TITAN = "amazon.titan-embed-text-v2:0"
_QUERIES = 400
_RECALL_QUERIES = 200
_TURN = 10
_RERANK_MS = 50
_DEPTH = 200
_HEAP = "3g"
_WARM_UP_QUERIES = 1_200
_PATIENT = Budgets(encode_ms=10_000, retrieve_ms=60_000, rerank_ms=10_000)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a run measures; `again`: also what has been measured before.

    Indices stay in `folder`; None: they are removed when all of their sizes are measured.
    """

    sizes: Sequence[int] = SIZES
    components: Sequence[int] = COMPONENTS
    encodings: Sequence[str] = tuple(ENCODINGS)
    again: bool = False
    folder: Path | None = None

    def of_dimension(self, dimension: int) -> Path:
        """The folder of the indices with so many components."""
        return (self.folder or user_cache()) / f"growth-{dimension}"


def growth(data: Path, settings: Settings, chosen: Chosen) -> dict[str, Any]:
    """Measure every chosen size that has no figures yet, and save each."""
    rows = _saved()
    wanted = {
        dimension: [size for size in sorted(chosen.sizes) if chosen.again or _missing(rows, size, dimension, chosen)]
        for dimension in chosen.components
    }
    vectors = _vectors(data, settings, chosen)
    for dimension, sizes in wanted.items():
        folder = chosen.of_dimension(dimension)
        if sizes:
            with _bench(settings, folder, vectors[dimension], chosen.encodings) as bench:
                measured = bench.measure(sizes, chosen.sizes)
            new = {_key(row) for row in measured}
            rows = [row for row in rows if _key(row) not in new] + measured
            rows.sort(key=lambda row: (-row["dimension"], row["documents"], row["encoding"]))
            write_results(NAME, _results(rows))
        if chosen.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return _results(rows)


def fill_indices(data: Path, settings: Settings, chosen: Chosen) -> None:
    """Make the indices that `growth` asks and their merged copies, for which the machine need not be quiet."""
    for dimension, vectors in _vectors(data, settings, chosen).items():
        with _bench(settings, chosen.of_dimension(dimension), vectors, chosen.encodings) as bench:
            bench.make(chosen.sizes)


def _vectors(data: Path, settings: Settings, chosen: Chosen) -> dict[int, ShapedVectors]:
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder for vectors of real texts: unset MATS_ENCODER=none")
    documents, queries = shaped(data, encoder, _QUERIES)
    return {dimension: ShapedVectors(documents, queries, dimension) for dimension in chosen.components}


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
        module_process("tests.aws.bedrock", *arguments, env={}) as (_, stand_in),
    ):
        os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = stand_in
        yield _Bench(
            replace(settings, index_endpoint=url, region=REGION, bedrock=True, encoder=_TITAN),
            GrowthIndices(url, folder, vectors, _TITAN),
            vectors,
            encodings,
        )


@dataclass(frozen=True)
class _Bench:
    settings: Settings
    indices: GrowthIndices
    vectors: ShapedVectors
    encodings: Sequence[str]

    def make(self, sizes: Sequence[int]) -> None:
        """Fill indices of these sizes, and make their merged copies."""
        for name in self._filled(sizes).values():
            self.indices.merged(name)

    def _filled(self, sizes: Sequence[int]) -> dict[tuple[int, str], str]:
        """The names of indices of these sizes, each in every encoding."""
        names: dict[tuple[int, str], str] = {}
        for encoding in self.encodings:
            smaller = ""
            for size in sorted(sizes):
                smaller = names[size, encoding] = self.indices.filled(size, encoding, smaller=smaller)
        return names

    def measure(self, sizes: Sequence[int], among: Sequence[int]) -> list[dict[str, Any]]:
        """Figures of these sizes in every encoding, each beside the next smaller one of `among`."""
        before = {size: max((other for other in among if other < size), default=None) for size in sizes}
        filled = self._filled(sorted({*sizes, *(other for other in before.values() if other)}))
        nearest = {size: self.vectors.nearest(size, _DEPTH)[:_RECALL_QUERIES] for size in sizes}
        states = {"as_filled": self._state(filled, before, nearest)}
        merged = {key: self.indices.merged(name) for key, name in filled.items()}
        states["merged"] = self._state(merged, before, nearest)
        about = {
            "dimension": self.vectors.dimension,
            "java": NodeStats(self.settings.index_endpoint).java(),
            "commit": provenance()["commit"],
        }
        return [
            {
                "documents": size, "encoding": encoding, **about,
                "fill": self.indices.effort(filled[size, encoding]),
                **{state: figures[size, encoding] for state, figures in states.items()},
            }
            for size in sizes for encoding in self.encodings
        ]  # fmt: skip

    def _warm_up(self, names: Mapping[tuple[int, str], str]) -> None:
        """Ask every query, without the reranker: a node that has just started still compiles.

        Its files are read before, because those that a search does not touch now are touched by a later one.
        """
        self.indices.read_files()
        texts = self._texts()
        for name in names.values():
            sys.stderr.write(f"{name}: warming up\n")
            discover = _patient(self._discover(name, texts))
            discover = replace(discover, rerank=replace(discover.rerank, reranker=None))
            for text in texts * math.ceil(_WARM_UP_QUERIES / (len(texts) * len(names))):
                Latencies(0).ask(discover, text)

    def _state(
        self, names: Mapping[tuple[int, str], str], before: Mapping[int, int | None], nearest: Mapping[int, Any]
    ) -> dict[tuple[int, str], dict[str, Any]]:
        """Figures by size and encoding: of answers, asked in turns, of the index, and recall."""
        self._warm_up(names)
        stats = NodeStats(self.settings.index_endpoint)
        asked = self._in_turns(names, stats)
        found: dict[tuple[int, str], dict[str, Any]] = {}
        for size, smaller in before.items():
            for encoding in self.encodings:
                name, figures = names[size, encoding], asked[size, encoding]
                found[size, encoding] = {**figures, **stats.of_index(name), **self._recall(name, nearest[size])}
                if smaller:
                    other = asked[smaller, encoding]["ms"]
                    ratio = round(figures["ms"]["p50"] / other["p50"], 3)
                    found[size, encoding]["beside"] = {"documents": smaller, "p50_ratio": ratio, "ms": other}
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
                warm = start < WARM_UP
                before = stats.cpu_ms()
                for text in texts[start : start + _TURN]:
                    (Latencies(_RERANK_MS) if warm else latencies[key]).ask(
                        _patient(discover) if warm else discover, text
                    )
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
        patient = Domain(self.settings.index_endpoint, region=REGION, read_s=PATIENCE_S)
        index = OpenSearchIndex(patient, list, encoder=_TITAN, read=name)
        shares: dict[int, list[float]] = {15: [], _DEPTH: []}
        for query, exact in zip(self.vectors.asked, nearest, strict=False):
            found = [int(hit.id.rpartition("_")[2]) for hit in index.neural(array("f", query), Filter(), depth=_DEPTH)]
            for depth, of_queries in shares.items():
                of_queries.append(len(set(found[:depth]) & set(exact[:depth].tolist())) / depth)
        return {f"recall@{depth}": round(float(np.mean(each)), 4) for depth, each in shares.items()}


def _patient(discover: Discover) -> Discover:
    return replace(discover, stages=replace(discover.stages, budgets=_PATIENT))
