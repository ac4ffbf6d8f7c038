"""Latency of answers with a reranker through the local service: one client, two hundred clients, and an outage."""

import asyncio
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from experiments.benchmarks.runner import module_process, percentiles, service
from mats.evaluation.data.datasets import load as load_dataset
from mats.evaluation.results import Json
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

_RERANK_MS = 750
_CLIENTS, _SECONDS = 200, 60


def load(data: Path, settings: Settings) -> dict[str, Any]:
    """Latencies over the tools with a reranker that takes 750 ms, and with one that fails or hangs."""
    dataset = load_dataset(data / "tools")
    bodies = [{"query": query.text[:2_000]} for query in dataset.queries[:500]]
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        home = replace(settings, home=local.settings.home)
        with _service(home, "--delay-ms", str(_RERANK_MS)) as url:
            alone = _measure(url, bodies[:60])
            began = time.perf_counter()
            crowd = _measure(url, _without_end(bodies), _CLIENTS, _SECONDS)
            crowd["per_second"] = round(crowd["answers"] / (time.perf_counter() - began), 1)
            crowd["p95_over_p50"] = round(crowd["ms"]["p95"] / crowd["ms"]["p50"], 2)
        outage = {}
        for state in ("dead", "stall"):
            with _service(home, f"--{state}") as url:
                _measure(url, bodies[-10:], clients=10)  # opens the circuit breaker
                outage[state] = _measure(url, bodies[:300])
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
            _measure(url, [{"query": "warm up"}] * 3)
            yield url


def _measure(url: str, bodies: Iterable[Json], clients: int = 1, seconds: float = math.inf) -> dict[str, Any]:
    """Send queries from clients, each of which sends the next one when it has an answer, for at most so long.

    A client that is refused waits as long as it is told to. Milliseconds are those of answers.
    """
    samples = asyncio.run(_ask(url, iter(bodies), clients, seconds))
    right = [(ms, response) for ms, response in samples if response is not None and response.status_code == 200]
    refused = sum(_retry_after_s(response) > 0 for _, response in samples)
    return {
        "answers": len(right),
        "refused": refused,
        "errors": len(samples) - len(right) - refused,
        "degraded": sum(bool(response.json()["degraded"]) for _, response in right),
        "ms": percentiles([ms for ms, _ in right]),
    }


def _retry_after_s(response: httpx.Response | None) -> float:
    """Seconds to wait after a refusal, 0 after any other response."""
    return float(response.headers["Retry-After"]) if response is not None and response.status_code == 429 else 0


async def _ask(
    url: str, bodies: Iterator[Json], clients: int, seconds: float
) -> list[tuple[float, httpx.Response | None]]:
    """Milliseconds of each request and its response; None if there was none."""
    samples: list[tuple[float, httpx.Response | None]] = []
    began = time.perf_counter()

    async def ask() -> None:
        # A client each, as a shared pool is slow; plain HTTP on this machine, so that no TLS context is loaded
        async with httpx.AsyncClient(timeout=30, verify=False) as client:  # noqa: S501 - no TLS here
            while (asked := time.perf_counter()) - began < seconds and (body := next(bodies, None)):
                response = None
                with suppress(httpx.HTTPError):
                    response = await client.post(f"{url}/discover", json=body)
                samples.append(((time.perf_counter() - asked) * 1000, response))
                await asyncio.sleep(_retry_after_s(response))

    await asyncio.gather(*(ask() for _ in range(clients)))
    return samples


def _without_end(bodies: Sequence[Json]) -> Iterator[Json]:
    """The bodies, over and over, with a number that makes each query one that was not encoded before."""
    for number in count():
        for body in bodies:
            yield {**body, "query": f"{body['query'][:1_980]} ({number})"}
