"""Benchmarks of the AWS deployment without an account: a real OpenSearch node, stand-ins for other services.

Results are written to `experiments/results/aws-NAME.json`.
"""

import os
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks.aws import cold_start
from experiments.benchmarks.runner import Benchmark, module_process, run_benchmarks
from experiments.data.enlarge import dense_slice
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.adapters.opensearch.mapping import index_body, write_alias
from mats.bootstrap.cloud import cloud_system
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import profile_of
from mats.domain.search.lookups import Vector
from mats.domain.search.query import Filter, Query
from mats.domain.text.words import query_terms
from mats.evaluation.data.datasets import JudgedQuery, load
from mats.evaluation.measures import estimate, per_query
from mats.evaluation.systems.base import ask, run_of
from mats.evaluation.systems.catalogue import shortlist_system
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.ports import Encoder, SearchIndex, Stored, Target
from mats.settings import Settings

REGION = "us-east-1"


@contextmanager
def node() -> Iterator[str]:
    """The address of a real OpenSearch node as it is distributed."""
    arguments = ("--port", "0", "--heap", "1g", "--collector", "G1", "--optimise")
    with module_process("tests.aws.opensearch", *arguments) as url:
        yield url


def index_on(url: str, encoder: Encoder) -> OpenSearchIndex:
    """A new index on a node."""
    domain, target = Domain(url, region=REGION, read_s=30), Target("capabilities-1", encoder.name)
    aliases = [write_alias(target.name), "capabilities"]
    domain.create(target.name, index_body(encoder.dimension, aliases=aliases, replicas="0-1", refresh="30s"))
    return OpenSearchIndex(domain, lambda: [target], encoder=encoder.name, refresh="false")


DIMENSION = 1024
TITAN = "amazon.titan-embed-text-v2:0"
_SLICE, _SMALL = 2_000, 1_000
_WARM_UP = 60


def parity(data: Path, settings: Settings) -> dict[str, Any]:
    """The first stage over OpenSearch and SQLite: the same slice of the tools, the same encoder."""
    dataset = dense_slice(load(data / "tools"), _SLICE)
    wanted, asked = [registration.id for registration in dataset.registrations], dataset.queries
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder to compare with: unset MATS_ENCODER=none")
    results: dict[str, Any] = {"documents": len(wanted), "queries": len(asked), "encoder": encoder.name}
    with registry_of(dataset.registrations, settings, encoder=encoder) as local, node() as url:
        index = index_on(url, encoder)
        index.put(list(local.stores.profiles.get(wanted).values()))
        index.domain.refresh("capabilities")
        sqlite = local.discover
        cloud = cloud_system(replace(settings, index_endpoint=url, region=REGION), encoder=encoder)
        shipped = cloud.discover
        opensearch = replace(shipped, index=index)
        systems = {"sqlite": shortlist_system(sqlite), "opensearch": shortlist_system(opensearch)}
        runs = {name: run_of(ask(system, asked)) for name, system in systems.items()}
        ratio = _bm25_ratio(sqlite.index, index, asked[:200])
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
    """The median ratio of the other index's BM25 score to the one's, over entries that both find."""
    ratios = []
    for query in queries:
        terms = query_terms(query.text)
        scores = one.lexical(terms, Filter(), depth=15)
        ratios += [score / scores[id] for id, score in other.lexical(terms, Filter(), depth=15).items() if id in scores]
    return float(np.median(ratios))


def _vector_of(text: str) -> Vector:
    """A vector of length 1, which no other text has, as if an encoder had made it."""
    vector = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(DIMENSION, dtype=np.float32)
    return array("f", (vector / np.linalg.norm(vector)).astype(np.float32))


def cold(data: Path, settings: Settings) -> dict[str, Any]:
    """Cold starts of both functions with the settings of the stacks, over a small index."""
    deployed = replace(settings, bedrock=True, encoder=TITAN, metrics="mats", callers_table="callers")
    with node() as url, module_process("tests.aws.bedrock", "--port", "0") as bedrock:
        os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = bedrock
        deployed = replace(
            deployed, index_endpoint=url, region=REGION, registry_table="r", trust_table="t", profiles_table="p"
        )
        cloud = cloud_system(deployed)
        if cloud.models.encoder is None:
            raise SystemExit("no encoder: unset MATS_ENCODER=none")
        index = index_on(url, cloud.models.encoder)
        update = {"rev": 1, "encoder": cloud.models.encoder.name}
        profiles = [
            profile_of(each, origin="").model_copy(update=update)
            for each in load(data / "tools").registrations[:_SMALL]
        ]
        index.put([Stored(profile, _vector_of(embedded_text(profile))) for profile in profiles])
        index.domain.refresh(index.read)
        for number in range(_WARM_UP):
            cloud.discover.answer(Query(query=f"refund {number} payments"))  # warms up the node
        return cold_start.cold(replace(deployed, region=""), bedrock)


BENCHMARKS: Mapping[str, Benchmark] = {"parity": parity, "cold": cold}


if __name__ == "__main__":
    os.environ |= {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_EC2_METADATA_DISABLED": "true"}
    run_benchmarks("aws", BENCHMARKS, __doc__)
