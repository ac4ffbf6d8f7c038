"""Every system under test as a value: the production pipeline with one thing changed, or a baseline."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from mats import bootstrap
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems import conversation
from mats.evaluation.systems.base import RankingSystem, SystemAnswer
from mats.evaluation.systems.chat_model import ChatModel
from mats.evaluation.systems.full_context import FullContext
from mats.evaluation.systems.pipeline import reranked_system, shortlist_system
from mats.evaluation.systems.plain_bm25 import PlainBm25
from mats.evaluation.systems.regex import Regex
from mats.evaluation.systems.search_and_pick import SearchAndPick
from mats.evaluation.systems.trial_and_error import TrialAndError
from mats.evaluation.systems.workbench import NeuralOnlyIndex, Workbench
from mats.usecases.discover import Discover


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A system by name; `needs` holds the models it requires: `encoder`, `llm`."""

    name: str
    description: str
    needs: frozenset[str] = frozenset()
    build: Callable[[Workbench], RankingSystem]
    prompt: Callable[[], str] = lambda: ""
    """The hash of its prompt; empty without a model."""


def _plain_bm25(bench: Workbench) -> RankingSystem:
    plain, k = PlainBm25(bench.dataset.registrations), bench.settings.k

    def answer(query: JudgedQuery) -> SystemAnswer:
        ids = plain.search(query.text, k)
        return SystemAnswer(ranked=ids, retrieved=ids)

    return answer


def lexical(discover: Discover) -> Discover:
    """The pipeline with lexical search alone."""
    return replace(discover, retrieve=replace(discover.retrieve, encoder=None))


def dense(discover: Discover, *, measures_bm25: bool = False) -> Discover:
    """The pipeline with neural search alone; candidates have a lexical signal only with `measures_bm25`."""
    index = NeuralOnlyIndex(discover.retrieve.index, measures_bm25)
    return replace(discover, retrieve=replace(discover.retrieve, index=index))


def _chat(bench: Workbench) -> ChatModel:
    return bench.models.chat(bench.settings.rerank_model)


def _with_reranker(first_stage: Callable[[Discover], Discover]) -> Callable[[Workbench], RankingSystem]:
    """The whole pipeline over a first stage, with the reranker of the settings."""
    return lambda bench: reranked_system(first_stage(bench.discover), bench.models, bench.settings.rerank_model)


def _as_shipped(discover: Discover) -> Discover:
    return discover


def _prompt(name: str) -> Callable[[], str]:
    return lambda: conversation.prompt(name).hash


def _rerank_prompt() -> str:
    return bootstrap.prompt("rerank").hash


_ENCODER, _LLM = frozenset({"encoder"}), frozenset({"llm"})

_ALL = (
    Variant(
        name="regex", description="every word of the query as a pattern, no model",
        build=lambda bench: Regex(bench.dataset.registrations, bench.settings.k),
    ),
    Variant(
        name="full-ctx", description="the whole registry in one prompt, a model picks", needs=_LLM,
        prompt=_prompt("full-ctx"), build=lambda bench: FullContext(bench.dataset.registrations, _chat(bench)),
    ),
    Variant(
        name="search-and-pick", description="a model searches with plain BM25, then picks", needs=_LLM,
        prompt=_prompt("search-and-pick"), build=lambda bench: SearchAndPick(bench.dataset.registrations, _chat(bench)),
    ),
    Variant(
        name="trial-and-err", description="a model lists and tries; its final try counts", needs=_LLM,
        prompt=_prompt("trial-and-err"), build=lambda bench: TrialAndError(bench.dataset.registrations, _chat(bench)),
    ),
    Variant(name="bm25", description="plain BM25 over name and description, the baseline", build=_plain_bm25),
    Variant(
        name="lexical", description="our fielded BM25 alone",
        build=lambda bench: shortlist_system(lexical(bench.discover)),
    ),
    Variant(
        name="dense", description="vectors alone", needs=_ENCODER,
        build=lambda bench: shortlist_system(dense(bench.discover)),
    ),
    Variant(
        name="hybrid", description="words and vectors, fused: the first stage as shipped", needs=_ENCODER,
        build=lambda bench: shortlist_system(bench.discover),
    ),
    Variant(
        name="pipeline-bm25", description="our fielded BM25 alone finds, the model reranks", needs=_LLM,
        prompt=_rerank_prompt, build=_with_reranker(lexical),
    ),
    Variant(
        name="pipeline-dense", description="vectors alone find, words are measured, the model reranks",
        needs=_LLM | _ENCODER, prompt=_rerank_prompt, build=_with_reranker(partial(dense, measures_bm25=True)),
    ),
    Variant(
        name="pipeline-hybrid", description="the whole pipeline as shipped", needs=_LLM | _ENCODER,
        prompt=_rerank_prompt, build=_with_reranker(_as_shipped),
    ),
)  # fmt: skip
VARIANTS: Mapping[str, Variant] = {variant.name: variant for variant in _ALL}
SYNONYMS = {"neural": "dense"}
