"""Benchmarks of the pipeline without a reranker."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import typer

from experiments.benchmarks.serving import latencies, resident_mb
from experiments.data.enlarge import ComposedEncoder, enlarge, is_original
from experiments.data.sets import sets_in
from mats.bootstrap import models
from mats.bootstrap.local import local_system
from mats.domain.capability.registration import Registration
from mats.domain.profile.index_fields import embedded_text
from mats.domain.search.query import Query
from mats.edge.schema import Answer
from mats.evaluation.data.datasets import load, sample
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.local.imports.importer import Importer
from mats.local.imports.sources import open_sources
from mats.local.worker import drain
from mats.settings import Settings

_DOCUMENTS, _QUERIES = 100_000, 1_000  # Of `scale`
_OPERATIONS, _ROUNDS, _LENGTH = 732, 3, 300  # Of `operations`, whose descriptions have so many characters or more


def latency(data: Path, settings: Settings) -> dict[str, Any]:
    """Latency of `discover` over the tools, in process, one query at a time, encoder included."""
    dataset = load(data / "tools")
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        return {
            "documents": len(dataset.registrations),
            **latencies(local.discover, [query.text[:LONGEST_QUERY] for query in dataset.queries]),
        }


def scale(data: Path, settings: Settings) -> dict[str, Any]:
    """Start, latency and resident memory of a process that serves 100,000 registrations, and what its searches miss."""
    originals = [each for name in sets_in(data) for each in load(data / name).registrations]
    registrations = enlarge(originals, _DOCUMENTS)
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder to measure: unset MATS_ENCODER=none")
    sys.stderr.write(f"encoding {sum(map(is_original, registrations)):,} texts that are not in the cache yet\n")
    composed = ComposedEncoder.of(encoder, registrations)
    texts = [query.text[:LONGEST_QUERY] for query in load(data / "tools").queries[:_QUERIES]]
    with (
        typer.progressbar(length=_DOCUMENTS, label="registering", file=sys.stderr) as bar,
        registry_of(registrations, settings, encoder=composed, progress=bar.update) as built,
    ):
        served = subprocess.run(
            [sys.executable, "-m", "experiments.benchmarks.serving"],
            env={**os.environ, **replace(settings, home=built.settings.home).to_env()},
            input=json.dumps(texts),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    count = sum(map(is_original, registrations))
    return {"documents": _DOCUMENTS, "originals": count, **json.loads(served.stdout)}


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


def operations(data: Path, settings: Settings) -> dict[str, Any]:
    """Import of one OpenAPI document, over encoding its texts alone by the same encoder: both in turn, medians.

    On a machine that others use, the ratio of processor time says more than that of time.
    """
    long = [one for one in load(data / "tools").registrations if len(one.description) >= _LENGTH]
    document, encoder = _openapi(long[:_OPERATIONS]), models.load_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder to measure: unset MATS_ENCODER=none")
    rounds: list[dict[str, float]] = []
    for _ in range(_ROUNDS):
        with TemporaryDirectory() as folder:
            file = Path(folder, "openapi.json")
            file.write_text(json.dumps(document), encoding="utf-8")
            local = local_system(replace(settings, home=Path(folder)), encoder=encoder)
            at = [(time.perf_counter(), time.process_time())]
            Importer(local.stores.registry).import_sources(open_sources(str(file), "com.example"))
            drain(local)
            at.append((time.perf_counter(), time.process_time()))
            stored = local.stores.profiles.get(list(local.stores.registry.ids()))
            texts = [embedded_text(one.profile) for one in stored.values()]
            at.append((time.perf_counter(), time.process_time()))
            encoder.encode_documents(texts)
            at.append((time.perf_counter(), time.process_time()))
            local.close()
        (import_s, import_cpu_s), _, (encoding_s, encoding_cpu_s) = (
            (after[0] - before[0], after[1] - before[1]) for before, after in pairwise(at)
        )
        rounds.append(
            {
                "import_s": import_s,
                "encoding_s": encoding_s,
                "ratio": import_s / encoding_s,
                "ratio_of_processor_time": import_cpu_s / encoding_cpu_s,
            }
        )
    medians = {key: round(median(one[key] for one in rounds), 2) for key in rounds[0]}
    return {"operations": len(texts), "characters": round(mean(map(len, texts))), "rounds": _ROUNDS, **medians}


def _openapi(registrations: Sequence[Registration]) -> dict[str, Any]:
    paths = {}
    for number, one in enumerate(registrations):
        body = {"content": {"application/json": {"schema": one.input_schema or {}}}}
        paths[f"/operations/{number}"] = {"post": {"description": one.description, "requestBody": body}}
    return {"openapi": "3.1.0", "info": {"title": "Operations", "version": "1"}, "paths": paths}


def answer(data: Path, settings: Settings) -> dict[str, Any]:
    """The answer to the README's query over the sample registry."""
    query = Query(query="turn a street address into coordinates", limit=2, explain=True)
    dataset, encoder = sample(), models.load_encoder(settings)
    with registry_of(dataset.registrations, settings, encoder=encoder, trust=dataset.trust) as local:
        local.discover.answer(query)
        shortlist = local.discover.answer(query)
    return {"query": query.model_dump(exclude_defaults=True), "answer": Answer.of(shortlist).model_dump(mode="json")}
