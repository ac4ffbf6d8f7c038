"""Latency of answers with a reranker through the local service: one client, a hundred clients, and an outage."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from experiments.benchmarks.percentiles import percentiles
from experiments.benchmarks.runner import module_process, service
from mats.evaluation.data.datasets import load as load_dataset
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

_RERANK_MS = 750
_CLIENTS, _SECONDS = 100, 60


def load(data: Path, settings: Settings) -> dict[str, Any]:
    """Latencies over the tools with a reranker that takes 750 ms, and with one that fails or hangs."""
    dataset = load_dataset(data / "tools")
    bodies = [{"query": query.text[:2_000]} for query in dataset.queries[:500]]
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        home = replace(settings, home=local.settings.home)
        with _service(home, "--delay-ms", str(_RERANK_MS)) as url:
            alone = _sequential(url, bodies[:60])
            crowd = asyncio.run(_concurrent(url, bodies))
        outage = {}
        for state in ("dead", "stall"):
            with _service(home, f"--{state}") as url:
                asyncio.run(_at_once(url, bodies[-10:]))  # opens the circuit breaker
                outage[state] = _sequential(url, bodies[:300])
    return {
        "documents": len(dataset.registrations),
        "reranker_ms": _RERANK_MS,
        "one_client": alone,
        "clients": {"count": _CLIENTS, "seconds": _SECONDS, **crowd},
        "reranker_dead_breaker_open": outage,
    }


@contextmanager
def _service(settings: Settings, *arguments: str) -> Iterator[str]:
    """The URL of `mats serve` over a registry, with a Bedrock stand-in as its reranker."""
    with module_process("tests.aws.bedrock", "--port", "0", *arguments) as bedrock:
        env = {
            **replace(settings, bedrock=True, writer_model="none", region="us-east-1").to_env(),
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock,
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
        }
        with service(env) as url:
            _sequential(url, [{"query": "warm up"}] * 3)
            yield url


Sample: TypeAlias = tuple[float, httpx.Response | None]
"""Milliseconds of a request and its response; None if there was none."""


def _summary(samples: Sequence[Sample]) -> dict[str, Any]:
    times = [ms for ms, _ in samples]
    right = [response for _, response in samples if response is not None and response.status_code == 200]
    return {
        "answers": len(samples),
        "errors": len(samples) - len(right),
        "degraded": sum(bool(response.json()["degraded"]) for response in right),
        "ms": {**percentiles(times, 50, 95, digits=1), "max": round(max(times), 1)},
    }


def _sequential(url: str, bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    samples: list[Sample] = []
    with httpx.Client(timeout=30) as client:
        for body in bodies:
            began = time.perf_counter()
            response = client.post(f"{url}/discover", json=body)
            samples.append(((time.perf_counter() - began) * 1000, response))
    return _summary(samples)


def _without_end(bodies: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The bodies, over and over, with a number that makes each query one that was not encoded before."""
    for number in count():
        for body in bodies:
            yield {**body, "query": f"{body['query'][:1_980]} ({number})"}


async def _at_once(url: str, bodies: Sequence[Mapping[str, Any]]) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        await asyncio.gather(*(client.post(f"{url}/discover", json=body) for body in bodies))


async def _concurrent(url: str, bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A hundred clients, each of which sends its next query when it has the last answer; no query is sent twice."""
    samples: list[Sample] = []
    queries, began = _without_end(bodies), time.perf_counter()
    limits = httpx.Limits(max_connections=_CLIENTS, max_keepalive_connections=_CLIENTS)
    async with httpx.AsyncClient(timeout=30, limits=limits) as client:

        async def ask() -> None:
            while (asked := time.perf_counter()) - began < _SECONDS:
                response = None
                with suppress(httpx.HTTPError):
                    response = await client.post(f"{url}/discover", json=next(queries))
                samples.append(((time.perf_counter() - asked) * 1000, response))

        await asyncio.gather(*(ask() for _ in range(_CLIENTS)))
    figures = _summary(samples)
    return {
        **figures,
        "per_second": round(len(samples) / (time.perf_counter() - began), 1),
        "p95_over_p50": round(figures["ms"]["p95"] / figures["ms"]["p50"], 2),
    }
