"""Measure what runs in AWS, as far as it can be without an account: a real OpenSearch node, stand-ins for the rest.

`python -m infra.bench.aws --data DIR [NAME ...]` writes evaluation/results/aws-NAME.json for each of NAMES.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from infra.bench import cold_start
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.adapters.opensearch.mapping import index_body, write_alias
from mats.bootstrap.cloud import cloud_system
from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile import embedded_text, profile_of
from mats.domain.query import Filter, Query
from mats.domain.registration import Registration
from mats.domain.text import query_terms
from mats.evaluation.benchmarks.processes import module_process
from mats.evaluation.data.datasets import JudgedQuery, load
from mats.evaluation.data.synthetic import registrations, vector_of
from mats.evaluation.measures import SEED, estimate, per_query
from mats.evaluation.reporting.results import write_results
from mats.evaluation.systems.cached_encoder import cached_encoder
from mats.evaluation.systems.pipeline import run_discover
from mats.evaluation.systems.workbench import registry_of
from mats.ports import Encoder, SearchIndex, Stored, Target, Vector
from mats.settings import Settings
from mats.usecases.discover import Discover
from mats.usecases.stages import Budgets

DOCUMENTS = 100_000
DIMENSION = 1024
TITAN = "amazon.titan-embed-text-v2:0"
_QUERIES = 600
_WARM_UP = 60
_RERANK_MS = 300
_REGION = "us-east-1"
_PAGE = 1_000
_SLICE = 2_000


@contextmanager
def node(heap: str, running_at: str = "") -> Iterator[str]:
    """A real OpenSearch node, its second compiler on, or the one that runs at an address; the address."""
    if running_at:
        yield running_at
        return
    arguments = ("--port", "0", "--heap", heap, "--collector", "G1", "--optimise")
    with module_process("tests.servers.opensearch", *arguments, env={}) as (_, url):
        yield url


@contextmanager
def index_on(url: str, encoder: Encoder, *, read_s: float = 30) -> Iterator[OpenSearchIndex]:
    """An index on a node: a new one, or the one of an earlier run."""
    domain, target = Domain(url, region=_REGION, read_s=read_s), Target("capabilities-1", encoder.name)
    aliases = [write_alias(target.name), "capabilities"]
    domain.create(target.name, index_body(encoder.dimension, aliases=aliases, replicas="0-1", refresh="30s"))
    yield OpenSearchIndex(domain, lambda: [target], encoder=encoder.name, refresh="false")


def parity(data: Path, settings: Settings) -> dict[str, Any]:
    """The first stage over OpenSearch and over SQLite on the same slice of the tools, with the same encoder."""
    dataset = load(data / "tools")
    queries = list(dataset.queries)
    random.Random(SEED).shuffle(queries)
    registered = {registration.id: registration for registration in dataset.registrations}
    wanted: dict[Id, None] = {}
    asked: list[JudgedQuery] = []
    for query in queries:
        if len(wanted) < _SLICE * 2 // 3 and query.relevant <= registered.keys():
            asked.append(query)
            wanted |= dict.fromkeys(sorted(query.relevant))
    wanted |= dict.fromkeys([id for id in registered if id not in wanted][: _SLICE - len(wanted)])
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("there is no encoder to compare with: MATS_ENCODER is none")
    results: dict[str, Any] = {"documents": len(wanted), "queries": len(asked), "encoder": encoder.name}
    with (
        registry_of([registered[id] for id in wanted], settings, encoder=encoder) as local,
        node("1g") as url,
        index_on(url, encoder) as index,
    ):
        index.put(list(local.stores.profiles.get(list(wanted)).values()))
        index.domain.refresh("capabilities")
        there = local.discover
        cloud = cloud_system(replace(settings, index_endpoint=url, region=_REGION), encoder=encoder)
        shipped = cloud.discover
        away = replace(shipped, retrieve=replace(shipped.retrieve, index=index))
        runs = {"sqlite": run_discover(there, asked), "opensearch": run_discover(away, asked)}
        ratio = _bm25_ratio(there.retrieve.index, index, asked[:200])
    for name, run in runs.items():
        results[name] = {measure: asdict(estimate(values)) for measure, values in per_query(run, asked).items()}
    difference = results["opensearch"]["match@15"]["mean"] - results["sqlite"]["match@15"]["mean"]
    shared = [len(set(a[:15]) & set(b[:15])) / 15 for a, b in zip(*(r.values() for r in runs.values()), strict=True)]
    return {
        **results,
        "match@15_difference_pp": round(100 * difference, 2),
        "same_of_15": round(float(np.mean(shared)), 3),
        "bm25_ratio": round(ratio, 3),
    }


def _bm25_ratio(one: SearchIndex, other: SearchIndex, queries: Sequence[JudgedQuery]) -> float:
    """The median of what the other index scores an entry, relative to the one: what their constants differ by."""
    ratios = []
    for query in queries:
        terms = query_terms(query.text)
        scores = {hit.id: hit.score for hit in one.lexical(terms, Filter(), depth=15)}
        ratios += [hit.score / scores[hit.id] for hit in other.lexical(terms, Filter(), depth=15) if hit.id in scores]
    return float(np.median(ratios))


def answer(data: Path, settings: Settings) -> dict[str, Any]:
    """Our share of an online answer at 100,000 documents: all of it but the time the reranker itself takes.

    The stand-in for Titan answers at once, so the encoder's round trip counts as ours, and nothing hides behind it.
    """
    made = registrations(DOCUMENTS)
    chance = random.Random(SEED)
    texts = [chance.choice(made).description[:200] for _ in range(_QUERIES)]
    arguments = ("--port", "0", "--delay-ms", str(_RERANK_MS))
    with (
        node("3g", settings.index_endpoint) as url,
        module_process("tests.servers.bedrock", *arguments, env={}) as (_, stand_in),
    ):
        os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = stand_in
        cloud = cloud_system(replace(settings, index_endpoint=url, region=_REGION, bedrock=True, encoder=TITAN))
        if cloud.models.encoder is None:
            raise SystemExit("there is no encoder")
        with index_on(url, cloud.models.encoder) as index:
            if sum(1 for _ in index.revisions()) < DOCUMENTS:
                _fill(index, made, cloud.models.encoder.name)
            shipped = cloud.discover
            discover = replace(shipped, retrieve=replace(shipped.retrieve, encoder=_Dense(cloud.models.encoder)))
            patience = Budgets(encode_ms=10_000, retrieve_ms=30_000, rerank_ms=10_000)
            slow_start = replace(
                discover,
                retrieve=replace(discover.retrieve, index=index),
                stages=replace(discover.stages, budgets=patience),
            )
            _shares(slow_start, texts)
            figures = {"as_filled": _shares(discover, texts)}
            index.domain.merge("capabilities")
            figures["merged"] = _shares(discover, texts)
    return {"documents": DOCUMENTS, "dimension": DIMENSION, "reranker_ms": _RERANK_MS, **figures}


def _fill(index: OpenSearchIndex, made: Sequence[Registration], encoder: str) -> None:
    """Put all of them with dense vectors of their texts."""
    for start in range(0, len(made), _PAGE):
        profiles = [profile_of(registration, trust=None, origin="") for registration in made[start : start + _PAGE]]
        index.put(
            [
                Stored(p.model_copy(update={"rev": 1, "encoder": encoder}), vector_of(embedded_text(p), DIMENSION))
                for p in profiles
            ]
        )
        sys.stderr.write(f"\r{start + len(profiles):,} of {len(made):,}")
    index.domain.refresh("capabilities")


@dataclass(frozen=True, slots=True)
class _Dense:
    """An encoder's round trip, with dense vectors for what it answers: a stand-in's are sparse."""

    encoder: Encoder

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_query(self, text: str) -> Vector:
        self.encoder.encode_query(text)
        return vector_of(text, self.dimension)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        return [vector_of(text, self.dimension) for text in texts]


def _shares(discover: Discover, texts: Sequence[str]) -> dict[str, Any]:
    """Percentiles of our share, one query after the other, and of each stage."""
    shares: list[float] = []
    stages: dict[str, list[float]] = {}
    degraded = failed = 0
    for number, text in enumerate(texts):
        try:
            shortlist = discover(Query(query=text))
        except DependencyFailed:
            failed += 1
            continue
        if number >= _WARM_UP:
            shares.append(shortlist.trace.took_ms["total"] - _RERANK_MS)
            degraded += bool(shortlist.degraded)
            for stage, ms in shortlist.trace.took_ms.items():
                stages.setdefault(stage, []).append(ms)
    return {
        "queries": len(shares),
        "degraded": degraded,
        "failed": failed,
        "ms": {f"p{p}": round(float(np.percentile(shares, p)), 1) for p in (50, 95, 99)},
        "stages_ms": {
            stage: {f"p{p}": round(float(np.percentile(ms, p)), 1) for p in (50, 99)} for stage, ms in stages.items()
        },
    }


def cold(data: Path, settings: Settings) -> dict[str, Any]:
    """Cold starts of both functions, as the stacks set them, over a small index."""
    deployed = replace(settings, bedrock=True, encoder=TITAN, metrics="mats", callers_table="callers")
    with node("1g") as url, module_process("tests.servers.bedrock", "--port", "0", env={}) as (_, bedrock):
        os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = bedrock
        deployed = replace(
            deployed, index_endpoint=url, region=_REGION, registry_table="r", trust_table="t", profiles_table="p"
        )
        cloud = cloud_system(deployed)
        if cloud.models.encoder is None:
            raise SystemExit("there is no encoder")
        with index_on(url, cloud.models.encoder) as index:
            _fill(index, registrations(_PAGE), cloud.models.encoder.name)
            for number in range(_WARM_UP):
                cloud.discover(Query(query=f"refund {number} payments"))  # the node's own first calls
            return cold_start.cold(replace(deployed, region=""))


BENCHMARKS = {"parity": parity, "cold": cold, "answer": answer}


def main() -> None:
    """Run the benchmarks named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of judged data sets")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; all by default")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - BENCHMARKS.keys():
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    os.environ |= {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_EC2_METADATA_DISABLED": "true"}
    settings = Settings.from_env(os.environ)
    for name in chosen.names or BENCHMARKS:
        results = BENCHMARKS[name](chosen.data, settings)
        path = write_results(f"aws-{name}", results)
        sys.stdout.write(f"{path.name}: {json.dumps(results)}\n")


if __name__ == "__main__":
    main()
