"""Benchmarks of the answer with a reranker: what a call costs, and what it takes end to end through the service."""

import asyncio
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from mats import bootstrap
from mats.domain.explain import explain
from mats.domain.profile import Profile
from mats.domain.query import Query
from mats.domain.rerank_prompt import CARD_BYTES, card
from mats.domain.text import query_terms, stem, words
from mats.evaluation.cache import cached
from mats.evaluation.datasets import load as load_dataset
from mats.evaluation.processes import running
from mats.evaluation.tokens import TOKENIZER, Tokens
from mats.evaluation.workbench import registry_of
from mats.settings import Settings

_RERANK_MS = 750
_CLIENTS, _SECONDS = 100, 60
_EVERY = 4
"""One query of so many: the figures do not move with more."""


def rerank(data: Path, settings: Settings) -> dict[str, Any]:
    """Tokens of a rerank call at k candidates of the tools, and how much of what matched a judge gets to see."""
    dataset = load_dataset(data / "tools")
    prompt, tokens = bootstrap.prompt("rerank"), Tokens()
    calls, judged, seen = [], [], []
    with registry_of(dataset.registrations, settings, encoder=cached(settings)) as local:
        for query in dataset.queries[::_EVERY]:
            shortlist = local.discovery.discover(Query(query=query.text[:2_000]))
            profiles = [result.candidate.profile for result in shortlist.ranked]
            calls.append(tokens.of_rerank(prompt, query.text[:2_000], profiles))
            judged.append(tokens.of_scores(len(profiles)))
            seen += [
                _seen(query.text, profile, card(1, profile)) for profile in profiles if profile.id in query.relevant
            ]
    visible_share = [share for share in seen if share is not None]
    return {
        "k": settings.k,
        "calls": len(calls),
        "tokenizer": TOKENIZER,
        "card_bytes": CARD_BYTES,
        "input_tokens": _spread(calls),
        "output_tokens": _spread(judged),
        "fixed_input_tokens": tokens.of_fixed(prompt),
        "matched_words_visible_to_the_judge": round(statistics.mean(visible_share), 3),
    }


def _seen(query: str, profile: Profile, shown: str) -> float | None:
    """The share of the query's words that match a profile which stand in what a judge is shown of it."""
    matched = {stem(term) for term in explain(query_terms(query), profile).matched}
    return len(matched & set(map(stem, words(shown)))) / len(matched) if matched else None


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "p50": round(float(np.percentile(values, 50)), 1),
        "p95": round(float(np.percentile(values, 95)), 1),
        "max": round(float(max(values)), 1),
    }


def load(data: Path, settings: Settings) -> dict[str, Any]:
    """Answers of the local service over the tools, with a reranker that takes 750 ms, and with one that is dead."""
    dataset = load_dataset(data / "tools")
    bodies = [{"query": query.text[:2_000]} for query in dataset.queries[:500]]
    with registry_of(dataset.registrations, settings, encoder=cached(settings)) as local:
        home = replace(settings, home=local.settings.home)
        with _service(home, "--delay-ms", str(_RERANK_MS)) as url:
            alone = _one_by_one(url, bodies[:60])
            crowd = asyncio.run(_crowd(url, bodies))
        dead = {}
        for state in ("dead", "stall"):
            with _service(home, f"--{state}") as url:
                asyncio.run(_at_once(url, bodies[:10]))  # opens the breaker
                dead[state] = _one_by_one(url, bodies[:300])
    return {
        "documents": len(dataset.registrations),
        "reranker_ms": _RERANK_MS,
        "one_client": alone,
        "clients": {"count": _CLIENTS, "seconds": _SECONDS, **crowd},
        "reranker_dead_breaker_open": dead,
    }


@contextmanager
def _service(settings: Settings, *arguments: str) -> Iterator[str]:
    """`mats serve` over a registry, with a stand-in for Bedrock beside it; the service's URL."""
    with running("tests.servers.bedrock", "--port", "0", *arguments, env={}) as (_, bedrock):
        env = {
            **replace(settings, bedrock=True, writer_model="none", region="us-east-1").to_env(),
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock,
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
        }
        with running("mats.local.cli", "serve", "--port", "0", env=env) as (_, line):
            url = next(word for word in line.split() if word.startswith("http://"))
            _one_by_one(url, [{"query": "warm up"}] * 3)
            yield url


class _Heard:
    """What the answers were like."""

    def __init__(self) -> None:
        self.ms: list[float] = []
        self.errors = 0
        self.degraded = 0

    def hear(self, response: httpx.Response | None, began: float) -> None:
        self.ms.append((time.perf_counter() - began) * 1000)
        if response is None or response.status_code != 200:
            self.errors += 1
        elif response.json()["degraded"]:
            self.degraded += 1

    def figures(self) -> dict[str, Any]:
        ms = _spread(self.ms)
        return {"answers": len(self.ms), "errors": self.errors, "degraded": self.degraded, "ms": ms}


def _one_by_one(url: str, bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    heard = _Heard()
    with httpx.Client(timeout=30) as client:
        for body in bodies:
            began = time.perf_counter()
            heard.hear(client.post(f"{url}/discover", json=body), began)
    return heard.figures()


async def _at_once(url: str, bodies: Sequence[Mapping[str, Any]]) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        await asyncio.gather(*(client.post(f"{url}/discover", json=body) for body in bodies))


async def _crowd(url: str, bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Clients that ask one question after the other, all at the same time."""
    heard, questions = _Heard(), cycle(bodies)
    began = time.perf_counter()
    limits = httpx.Limits(max_connections=_CLIENTS, max_keepalive_connections=_CLIENTS)
    async with httpx.AsyncClient(timeout=30, limits=limits) as client:

        async def ask() -> None:
            while time.perf_counter() - began < _SECONDS:
                asked = time.perf_counter()
                try:
                    heard.hear(await client.post(f"{url}/discover", json=next(questions)), asked)
                except httpx.HTTPError:
                    heard.hear(None, asked)

        await asyncio.gather(*(ask() for _ in range(_CLIENTS)))
    seconds = time.perf_counter() - began
    figures = heard.figures()
    return {
        **figures,
        "per_second": round(figures["answers"] / seconds, 1),
        "p95_over_p50": round(figures["ms"]["p95"] / figures["ms"]["p50"], 2),
    }
