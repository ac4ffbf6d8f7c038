"""Benchmarks of the pipeline without a reranker."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from experiments.benchmarks.serving import latencies, resident_mb
from experiments.data.enlarge import ComposedEncoder, enlarge, is_original
from experiments.data.sets import sets_in
from mats.bootstrap import models
from mats.bootstrap.local import local_system
from mats.domain.search.query import Query
from mats.edge.schema import Answer
from mats.evaluation.data.datasets import load
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import index_changes, registry_of
from mats.local.cli.serve import load_sample
from mats.settings import Settings

_DOCUMENTS, _QUERIES = 100_000, 1_000  # Of `scale`
_IMPORTED, _MEANWHILE = 20_000, 250  # Documents of these that are imported while so many queries are answered


def latency(data: Path, settings: Settings) -> dict[str, Any]:
    """Latency of `discover` over the tools, in process, one query at a time, encoder included."""
    dataset = load(data / "tools")
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        return {
            "documents": len(dataset.registrations),
            **latencies(local.discover, [query.text[:LONGEST_QUERY] for query in dataset.queries]),
        }


def scale(data: Path, settings: Settings) -> dict[str, Any]:
    """Start, latency and resident memory of a process that serves 100,000 registrations, and latency in an import."""
    originals = [each for name in sets_in(data) for each in load(data / name).registrations]
    registrations = enlarge(originals, _DOCUMENTS)
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder to measure: unset MATS_ENCODER=none")
    sys.stderr.write(f"encoding {sum(map(is_original, registrations)):,} texts that are not in the cache yet\n")
    composed = ComposedEncoder.of(encoder, registrations)
    texts = [query.text[:LONGEST_QUERY] for query in load(data / "tools").queries[:_QUERIES]]
    known, imported = registrations[:-_IMPORTED], registrations[-_IMPORTED:]
    with (
        typer.progressbar(length=len(known), label="registering", file=sys.stderr) as bar,
        registry_of(known, settings, encoder=composed, progress=bar.update) as built,
    ):
        env = {**os.environ, **replace(settings, home=built.settings.home).to_env()}
        with ThreadPoolExecutor(1) as beside:
            meanwhile = beside.submit(_serve, texts[:_MEANWHILE], env)
            for start in range(0, _IMPORTED, 100):
                batch = imported[start : start + 100]
                built.stores.registry.put(batch)
                index_changes(built, [each.id for each in batch])
            is_measured = meanwhile.done()
        if not is_measured:
            raise SystemExit(f"{_IMPORTED:,} were imported before {_MEANWHILE} queries were answered: import more")
        served = _serve(texts, env)
    count = sum(map(is_original, registrations))
    ms = {"imported": _IMPORTED, **meanwhile.result()["ms"]}
    return {"documents": _DOCUMENTS, "originals": count, **served, "while_importing": ms}


def _serve(texts: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    served = subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks.serving"],
        env=env, input=json.dumps(texts), stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    measures: dict[str, Any] = json.loads(served.stdout)
    return measures


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
    with TemporaryDirectory() as home, closing(local_system(replace(settings, home=Path(home)))) as local:
        load_sample(local)
        local.discover.answer(query)
        shortlist = local.discover.answer(query)
    return {"query": query.model_dump(exclude_defaults=True), "answer": Answer.of(shortlist).model_dump(mode="json")}
