"""Benchmarks of the answer with a reranker: what a call costs, and what it takes end to end through the service."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mats import bootstrap
from mats.domain.explain import explain
from mats.domain.profile import Profile
from mats.domain.query import Query
from mats.domain.rerank_prompt import CARD_BYTES, card
from mats.domain.text import query_terms, stem, words
from mats.evaluation.benchmarks.tokens import TOKENIZER, Tokens
from mats.evaluation.data.datasets import load as load_dataset
from mats.evaluation.systems.cached_encoder import cached_encoder
from mats.evaluation.systems.workbench import registry_of
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
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        for query in dataset.queries[::_EVERY]:
            shortlist = local.discover(Query(query=query.text[:2_000]))
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
