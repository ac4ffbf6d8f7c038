"""Every system under test, as a value: a changed field of the production object, or a baseline of the literature."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mats import bootstrap
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems import conversation as chat
from mats.evaluation.systems.base import Answer, System
from mats.evaluation.systems.full_context import FullContext
from mats.evaluation.systems.pipeline import judging
from mats.evaluation.systems.plain_bm25 import PlainBm25
from mats.evaluation.systems.regex import Regex
from mats.evaluation.systems.search_and_pick import SearchAndPick
from mats.evaluation.systems.trial_and_error import TrialAndError
from mats.evaluation.systems.workbench import WithoutWords, Workbench, asking
from mats.ports import Chat
from mats.usecases.discover import Discover


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A system by name; `needs` says which models it cannot do without: `encoder`, `llm`."""

    name: str
    says: str
    needs: frozenset[str] = frozenset()
    built: Callable[[Workbench], System]
    prompt: Callable[[], str] = lambda: ""
    """The hash of the prompt it asks a model with; empty if it asks none."""


def _plain(bench: Workbench) -> System:
    plain, k = PlainBm25(bench.dataset.registrations), bench.settings.k

    def answer(query: JudgedQuery) -> Answer:
        found = plain.search(query.text, k)
        return Answer(ranked=found, retrieved=found)

    return answer


def lexical(discover: Discover) -> Discover:
    """Words alone."""
    return replace(discover, retrieve=replace(discover.retrieve, encoder=None))


def dense(discover: Discover, *, measures: bool = False) -> Discover:
    """Vectors alone choose the candidates; the lexical signal of those is measured only if asked for."""
    index = WithoutWords(discover.retrieve.index, measures)
    return replace(discover, retrieve=replace(discover.retrieve, index=index))


def _conversing(bench: Workbench) -> Chat:
    return bench.models.chat(bench.settings.rerank_model)


def _judged(first_stage: Callable[[Discover], Discover]) -> Callable[[Workbench], System]:
    """The whole pipeline over a first stage, judged by the model of the settings."""
    return lambda bench: judging(first_stage(bench.discover), bench.models.reranker(bench.settings.rerank_model))


def _as_shipped(discover: Discover) -> Discover:
    return discover


def _measuring_words(discover: Discover) -> Discover:
    return dense(discover, measures=True)


def _prompt(name: str) -> Callable[[], str]:
    return lambda: chat.prompt(name).hash


def _rerank_prompt() -> str:
    return bootstrap.prompt("rerank").hash


_ENCODER, _LLM = frozenset({"encoder"}), frozenset({"llm"})

_ALL = (
    Variant(
        name="regex", says="every word of the query as a pattern, no model",
        built=lambda bench: Regex(bench.dataset.registrations, bench.settings.k),
    ),
    Variant(
        name="full-ctx", says="the whole registry in one prompt, a model picks", needs=_LLM, prompt=_prompt("full-ctx"),
        built=lambda bench: FullContext(bench.dataset.registrations, _conversing(bench)),
    ),
    Variant(
        name="search-and-pick", says="a model searches with plain BM25, then picks", needs=_LLM,
        prompt=_prompt("search-and-pick"),
        built=lambda bench: SearchAndPick(bench.dataset.registrations, _conversing(bench)),
    ),
    Variant(
        name="trial-and-err", says="a model lists and tries; its final try counts", needs=_LLM,
        prompt=_prompt("trial-and-err"),
        built=lambda bench: TrialAndError(bench.dataset.registrations, _conversing(bench)),
    ),
    Variant(name="bm25", says="plain BM25 over name and description, the baseline", built=_plain),
    Variant(name="lexical", says="our fielded BM25 alone", built=lambda bench: asking(lexical(bench.discover))),
    Variant(
        name="dense", says="vectors alone", needs=_ENCODER, built=lambda bench: asking(dense(bench.discover))
    ),
    Variant(
        name="hybrid", says="words and vectors, fused: the first stage as shipped",
        needs=_ENCODER, built=lambda bench: asking(bench.discover),
    ),
    Variant(
        name="pipeline-bm25", says="our fielded BM25 alone finds, the model judges", needs=_LLM,
        prompt=_rerank_prompt, built=_judged(lexical),
    ),
    Variant(
        name="pipeline-dense", says="vectors alone find, words are measured, the model judges", needs=_LLM | _ENCODER,
        prompt=_rerank_prompt, built=_judged(_measuring_words),
    ),
    Variant(
        name="pipeline-hybrid", says="the whole pipeline as shipped", needs=_LLM | _ENCODER,
        prompt=_rerank_prompt, built=_judged(_as_shipped),
    ),
)  # fmt: skip
VARIANTS: Mapping[str, Variant] = {variant.name: variant for variant in _ALL}
SYNONYMS = {"neural": "dense"}
