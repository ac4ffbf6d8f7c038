"""Benchmarks without a reranker of a large registry, and of many requests at once."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path
from typing import Any

from experiments.data.enlarge import ComposedEncoder, enlarge, is_original
from mats.adapters.sqlite.saved import SAVED
from mats.domain.ranking.query import Query
from mats.evaluation.data.datasets import load, sets_in
from mats.evaluation.percentiles import percentiles
from mats.evaluation.systems.base import LONGEST_QUERY, Progress
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings
from mats.usecases.discover import Discover

_DOCUMENTS, _QUERIES = 100_000, 1_000
_SECONDS, _AT_ONCE = 15, (1, 2, 4, 8)


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
    with registry_of(registrations, settings, encoder=composed, progress=_tell()) as built:
        served = serve_apart(replace(settings, home=built.settings.home), texts)
    return {"documents": _DOCUMENTS, "originals": sum(map(is_original, registrations)), **served}


def serve_apart(settings: Settings, texts: Sequence[str]) -> dict[str, Any]:
    """What a new process measures that serves the registry of these settings; the first start is another process's.

    The first one reads every entry and saves what it has in memory; later ones begin with that.
    """
    (settings.home / SAVED).unlink(missing_ok=True)
    first = _apart(settings, [])
    return {**_apart(settings, texts), "first_start": first}


def _apart(settings: Settings, texts: Sequence[str]) -> dict[str, Any]:
    process = subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks.serving"],
        env={**os.environ, **settings.to_env()},
        input=json.dumps(texts),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    measured: dict[str, Any] = json.loads(process.stdout)
    return measured


def _tell() -> Progress:
    """Writes every ten thousandth registration to standard error."""
    done = 0

    def progress(more: int) -> None:
        nonlocal done
        if (done + more) // 10_000 > done // 10_000:
            sys.stderr.write(f"{done + more:,} of {_DOCUMENTS:,} registered\n")
        done += more

    return progress


def throughput(data: Path, settings: Settings) -> dict[str, Any]:
    """The most answers per second over the tools, in process, each query encoded, and their latency."""
    dataset = load(data / "tools")
    texts = [query.text[: LONGEST_QUERY - 20] for query in dataset.queries]
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        queries = zip(count(), cycle(texts), strict=False)
        _ask_at_once(local.discover, queries, 1)  # warm-up
        runs = {str(clients): _ask_at_once(local.discover, queries, clients) for clients in _AT_ONCE}
    return {"documents": len(dataset.registrations), "cores": os.cpu_count(), "seconds_each": _SECONDS, "clients": runs}


def _ask_at_once(discover: Discover, queries: Iterator[tuple[int, str]], clients: int) -> dict[str, Any]:
    """So many clients, each of which sends its next query when it has the last answer."""
    end = time.perf_counter() + _SECONDS

    def ask() -> list[float]:
        took = []
        while (began := time.perf_counter()) < end:
            number, text = next(queries)
            discover(Query(query=f"{text} ({number})"))
            took.append((time.perf_counter() - began) * 1000)
        return took

    with ThreadPoolExecutor(clients) as threads:
        times = [each for client in [threads.submit(ask) for _ in range(clients)] for each in client.result()]
    return {"per_second": round(len(times) / _SECONDS, 1), "ms": percentiles(times, 50, 95, 99)}
