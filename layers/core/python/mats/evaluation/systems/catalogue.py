"""Every system under test as a value: the production pipeline with one thing changed, or a baseline."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import TypeAlias

import numpy as np
import Stemmer
from rank_bm25 import BM25Okapi

from mats.bootstrap import models as bootstrap
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.search.blend import PAPER_TRUST
from mats.domain.search.bm25 import K1, B
from mats.domain.search.query import Query
from mats.domain.search.shortlist import Shortlist
from mats.domain.search.signals import PAPER_WEIGHTS, Weights
from mats.domain.text.words import LUCENE_STOP_WORDS, split_identifier
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.measures import NAMES
from mats.evaluation.systems.base import LONGEST_QUERY, Answers, Progress, RankingSystem, SystemAnswer, ask, no_progress
from mats.evaluation.systems.models import CallLog, Models, TimedReply
from mats.evaluation.systems.workbench import Workbench
from mats.usecases.discover import Discover


def shortlist_system(discover: Discover) -> RankingSystem:
    return lambda query: _answer(discover, Query(query=query.text[:LONGEST_QUERY]))


BLIND = ("skills", "agents")
"""Sets of which some providers have no gold, so that a model could tell by them what cannot be right."""


def reranked_system(
    discover: Discover, models: Models, *, blind: bool = False, weights: Weights = PAPER_WEIGHTS
) -> RankingSystem:
    """A system that answers with the whole shortlist, reranked by the settings' model, by the paper's plain weights.

    NotPermitted ends the run: thousands of answers without a reranker would measure another system. A `blind` one does
    not see providers.
    """

    def answer(query: JudgedQuery) -> SystemAnswer:
        calls = CallLog()
        reranker = models.reranker(calls, blind=blind)
        pipeline = replace(
            discover,
            scoring=replace(discover.scoring, weights=weights, trust=PAPER_TRUST),
            rerank=replace(discover.rerank, reranker=reranker),
        )
        answered = _answer(pipeline, Query(query=query.text[:LONGEST_QUERY]), calls.made)
        if calls.denied:
            raise calls.denied
        return answered

    return answer


def _answer(discover: Discover, query: Query, calls: Sequence[TimedReply] = ()) -> SystemAnswer:
    """The whole shortlist; `calls` are those that the reranker has made when it has answered."""
    shortlist = discover.answer(query)
    ranked = [result.id for result in shortlist.ranked]
    return SystemAnswer(
        ranked=ranked,
        retrieved=ranked,
        results=shortlist.ranked,
        verdict=shortlist.verdict,
        usage=shortlist.trace.usage,
        took_ms=_original_times(shortlist, calls),
        failed=_model_fault(shortlist, discover),
        calls=len(calls),
        cached=sum(call.cached for call in calls),
    )


def _original_times(shortlist: Shortlist, calls: Sequence[TimedReply]) -> dict[str, float]:
    """Milliseconds of each stage; for a cached reply those of the original call.

    `total` is without `queue`, the wait for other queries of the evaluation.
    """
    took = dict(shortlist.trace.took_ms)
    took["total"] -= took.get("queue", 0.0)
    for call in calls:
        if call.cached and "rerank" in took:
            took["total"] += call.took_ms - took["rerank"]
            took["rerank"] = call.took_ms
    return took


def _model_fault(shortlist: Shortlist, discover: Discover) -> str:
    """The error of a configured model that the answer lacks; empty if it lacks none."""
    models = {"neural": discover.encoder, "llm": discover.rerank.reranker}
    lacks_one = any(model is not None and part in shortlist.degraded for part, model in models.items())
    return "; ".join(shortlist.trace.faults) or "a model is missing" if lacks_one else ""


class PlainBm25:
    """`rank_bm25.BM25Okapi` over lower-cased words of two letters or more, Snowball-stemmed.

    Lucene's English stop words are left out. Of the usual definitions of plain BM25 this is a strong one: words of one
    letter cost 2 points of Match@1 on the tools.
    """

    def __init__(self, texts: Mapping[Id, str]) -> None:
        """Index a text for every id; at least one."""
        self._stem = Stemmer.Stemmer("english").stemWords
        self._ids = np.array(list(texts), dtype=object)
        self._index = BM25Okapi([self._terms(text) for text in texts.values()], k1=K1, b=B)

    def search(self, text: str, k: int) -> list[Id]:
        """At most k ids by score, equal scores by id; without those that score 0."""
        scores = self._index.get_scores(self._terms(text))
        order = np.lexsort((self._ids.astype(str), -scores))[:k]
        return [Id(self._ids[row]) for row in order if scores[row] > 0]

    def _terms(self, text: str) -> list[str]:
        words: list[str] = self._stem(
            [word for word in re.findall(r"\b\w\w+\b", text.lower()) if word not in LUCENE_STOP_WORDS]
        )
        return words


def names_and_descriptions(registrations: Sequence[Registration], *, splits_names: bool = False) -> dict[Id, str]:
    """The texts of the baseline. With `splits_names`, `get_weather` is also `get weather`."""
    names = [f"{r.name} {split_identifier(r.name)}" if splits_names else r.name for r in registrations]
    return {r.id: f"{name} {r.description}" for name, r in zip(names, registrations, strict=True)}


_CALLS_AT_ONCE = 8  # Of an LLM; other systems answer one query at a time, because their latency is measured
FirstStage: TypeAlias = Callable[[Discover], Discover]  # Changes the retrieval of a pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A system by name; `needs` holds the models it requires: `encoder`, `llm`."""

    name: str
    description: str
    needs: frozenset[str] = frozenset()
    build: Callable[[Workbench], RankingSystem]
    prompt: Callable[[], str] = lambda: ""  # The hash of its prompt; empty without a model
    measures: tuple[str, ...] = NAMES
    """Those that are defined for it: a system that picks one result has no more than Match@1."""

    @property
    def has_llm(self) -> bool:
        return "llm" in self.needs

    def answers(
        self, bench: Workbench, queries: Sequence[JudgedQuery] | None = None, *, progress: Progress = no_progress
    ) -> Answers:
        """The answers to these queries, by default to all of the workbench."""
        at_once = _CALLS_AT_ONCE if self.has_llm else 1
        asked = bench.dataset.queries if queries is None else queries
        return ask(self.build(bench), asked, at_once=at_once, progress=progress)


def lexical(discover: Discover) -> Discover:
    return replace(discover, encoder=None)


def plain_bm25(bench: Workbench, texts: Mapping[Id, str] | None = None) -> RankingSystem:
    plain = PlainBm25(texts or names_and_descriptions(bench.dataset.registrations))
    k = bench.models.settings.k

    def answer(query: JudgedQuery) -> SystemAnswer:
        began = time.perf_counter()
        ids = plain.search(query.text, k)
        return SystemAnswer(ranked=ids, retrieved=ids, took_ms={"total": 1_000 * (time.perf_counter() - began)})

    return answer


def pipeline(name: str, description: str, first_stage: FirstStage, *needs: str) -> Variant:
    """The pipeline over a first stage; if it needs an LLM, with the reranker of the settings."""
    has_llm = "llm" in needs

    def build(bench: Workbench) -> RankingSystem:
        discover = first_stage(bench.discover)
        blind = bench.dataset.name in BLIND
        return reranked_system(discover, bench.models, blind=blind) if has_llm else shortlist_system(discover)

    return Variant(
        name=name,
        description=description,
        needs=frozenset(needs),
        prompt=lambda: bootstrap.prompt("rerank").hash if has_llm else "",
        build=build,
    )


_SHIPPED = (
    Variant(name="bm25", description="plain BM25 over name and description, the baseline", build=plain_bm25),
    pipeline("lexical", "our fielded BM25 alone", lexical),
    pipeline("hybrid", "words and vectors, fused: the first stage as shipped", lambda discover: discover, "encoder"),
    pipeline("pipeline-hybrid", "the whole pipeline as shipped", lambda discover: discover, "llm", "encoder"),
)
VARIANTS: Mapping[str, Variant] = {variant.name: variant for variant in _SHIPPED}
PLUGINS = "mats.variants"
"""The group of entry points by which another distribution adds variants: each names an iterable of `Variant`."""


def all_variants() -> dict[str, Variant]:
    """The variants of installed plug-ins, then those of mats, which no plug-in replaces."""
    added = (variant for plugin in entry_points(group=PLUGINS) for variant in plugin.load())
    return {variant.name: variant for variant in added if variant.name not in VARIANTS} | dict(VARIANTS)
