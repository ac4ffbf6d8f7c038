"""The baselines and the paper's systems as variants, which the entry point `mats.variants` adds to `mats evaluate`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from experiments.baselines.chat_model import ChatModel
from experiments.baselines.conversation import prompt
from experiments.baselines.full_context import FullContext
from experiments.baselines.regex import Regex
from experiments.baselines.tool_users import SearchAndPick, TrialAndError
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.profile.index_fields import lexical_fields
from mats.domain.search.query import Filter
from mats.domain.search.scale import Scores
from mats.evaluation.systems.base import RankingSystem
from mats.evaluation.systems.catalogue import VARIANTS, FirstStage, Variant, lexical, pipeline, plain_bm25
from mats.evaluation.systems.workbench import Workbench
from mats.ports import SearchIndex
from mats.usecases.discover import Discover


def _picker(
    name: str, description: str, system: Callable[[Sequence[Registration], ChatModel], RankingSystem]
) -> Variant:
    """A model that picks one capability from the registry without the pipeline."""
    return Variant(
        measures=("match@1",),
        name=name,
        description=description,
        needs=frozenset({"llm", "conversation"}),
        prompt=lambda: prompt(name).hash,
        build=lambda bench: system(bench.dataset.registrations, ChatModel(models=bench.models)),
    )


class _WithoutWords:
    """An index without lexical search; the words of candidates are measured all the same."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Scores:
        return {}


class _NeuralOnly(_WithoutWords):
    """An index without words at all."""

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Scores:
        return {}


def dense(discover: Discover, *, measures_bm25: bool = False) -> Discover:
    index = _WithoutWords(discover.index) if measures_bm25 else _NeuralOnly(discover.index)
    return replace(discover, index=cast(SearchIndex, index))


def papers(first_stage: FirstStage) -> FirstStage:
    """The paper's pipeline over a first stage: without policies, which it does not have."""
    return lambda discover: replace(first_stage(discover), policies=())


def _bm25_over_our_text(bench: Workbench) -> RankingSystem:
    profiles = bench.discover.index.fetch([r.id for r in bench.dataset.registrations])
    return plain_bm25(bench, {id: " ".join(lexical_fields(profile).values()) for id, profile in profiles.items()})


BASELINES = (
    Variant(
        name="regex",
        description="every word of the query as a pattern, no model",
        build=lambda bench: Regex(bench.dataset.registrations, bench.models.settings.k),
    ),
    _picker("full-ctx", "the whole registry in one prompt, a model picks", FullContext),
    _picker("search-and-pick", "a model searches with BM25, then picks", SearchAndPick),
    _picker("trial-and-err", "a model lists and tries; its final try counts", TrialAndError),
    Variant(name="bm25-text", description="plain BM25 over all the text that mats searches", build=_bm25_over_our_text),
    pipeline("dense", "vectors alone", dense, "encoder"),
    pipeline("pipeline-bm25", "our fielded BM25 alone finds, the model reranks", papers(lexical), "llm"),
    pipeline(
        "pipeline-dense", "vectors alone find, words are measured, the model reranks",
        papers(partial(dense, measures_bm25=True)), "llm", "encoder",
    ),
)  # fmt: skip
SYSTEMS: Mapping[str, Variant] = {variant.name: variant for variant in BASELINES} | dict(VARIANTS)
"""Every system under test: the baselines and the variants of mats."""
