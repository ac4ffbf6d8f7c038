"""Benchmark of the MCP tools: tokens of their definitions, of an answer, and of a whole registry in a prompt."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.baselines.conversation import alphabetical, list_line
from experiments.benchmarks.reranker import TOKENIZER, enriched_by_template, token_counter
from experiments.benchmarks.runner import percentiles
from mats.bootstrap import models
from mats.domain.search.query import Query
from mats.domain.search.shortlist import Shortlist
from mats.domain.search.verdict import MinRelevance
from mats.domain.text.fence import remove_hidden
from mats.edge.app import Application
from mats.edge.http import Caller
from mats.edge.mcp.tools import definitions, search_results, to_lines
from mats.evaluation.data.datasets import load, sample
from mats.evaluation.systems.workbench import registry_of, without_timeouts
from mats.settings import Settings

RESULTS = 5
Count = Callable[[str], int]


def mcp(data: Path, settings: Settings) -> dict[str, Any]:
    """Tokens of the definitions, and of the answers to the queries of the sample with at most five results.

    Clients pass on the text or the structured content of an answer. `weak` is the default of `min_relevance`.
    """
    count = token_counter()
    with sample_application(settings) as application:
        of_all, of_weak = (list(shortlists(application, bound)) for bound in (0, "weak"))
    return {
        "tokenizer": TOKENIZER,
        "definitions": count_definitions(count),
        "answer": count_answers(of_weak, count),
        "answer_of_five": count_answers(of_all, count),
        "registry_in_prompt": count_registry(data / "tools", count),
    }


@contextmanager
def sample_application(settings: Settings) -> Iterator[Application]:
    """The application over the sample registry, without a reranker and without timeouts."""
    dataset, encoder = sample(), models.load_encoder(settings)
    with registry_of(dataset.registrations, settings, encoder=encoder, trust=dataset.trust) as local:
        yield replace(local.application, discover=without_timeouts(local.discover))


def shortlists(application: Application, min_relevance: MinRelevance) -> Iterator[Shortlist]:
    for query in sample().queries:
        yield application.search(Caller(), Query(query=query.text, limit=RESULTS, min_relevance=min_relevance))


def with_full_summaries(shortlist: Shortlist) -> Shortlist:
    profiles = (enriched_by_template(result.candidate.profile) for result in shortlist.ranked)
    ranked = (
        replace(result, candidate=replace(result.candidate, profile=profile))
        for result, profile in zip(shortlist.ranked, profiles, strict=True)
    )
    return replace(shortlist, ranked=tuple(ranked))


def count_registry(folder: Path, count: Count) -> dict[str, int]:
    """Tokens of a list of every capability of a data set: a number, name and description each, without schemas."""
    listed = alphabetical(load(folder).registrations)
    tokens = sum(count(list_line(number, each)) for number, each in enumerate(listed, start=1))
    return {"capabilities": len(listed), "tokens": tokens}


def count_definitions(count: Count) -> int:
    """Without `_meta`, which clients read and models do not."""
    read = [{key: value for key, value in one.items() if key != "_meta"} for one in definitions()]
    return count(_to_json({"tools": read}))


def count_answers(answers: Iterable[Shortlist], count: Count) -> dict[str, dict[str, float]]:
    """Percentiles of the tokens of the text, and of the structured content."""
    structured = [remove_hidden(search_results(answer)) for answer in answers]
    text = [count(to_lines(answer)) for answer in structured]
    content = [count(_to_json(answer)) for answer in structured]
    return {"text": percentiles(text), "structured": percentiles(content)}


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
