"""The baselines as variants, which the entry point `mats.variants` adds to `mats evaluate`."""

from collections.abc import Callable, Mapping, Sequence

from experiments.baselines.chat_model import ChatModel
from experiments.baselines.conversation import prompt
from experiments.baselines.full_context import FullContext
from experiments.baselines.regex import Regex
from experiments.baselines.tool_users import SearchAndPick, TrialAndError
from mats.domain.capability.registration import Registration
from mats.evaluation.systems.base import RankingSystem
from mats.evaluation.systems.catalogue import VARIANTS, Variant


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


BASELINES = (
    Variant(
        name="regex",
        description="every word of the query as a pattern, no model",
        build=lambda bench: Regex(bench.dataset.registrations, bench.models.settings.k),
    ),
    _picker("full-ctx", "the whole registry in one prompt, a model picks", FullContext),
    _picker("search-and-pick", "a model searches with BM25, then picks", SearchAndPick),
    _picker("trial-and-err", "a model lists and tries; its final try counts", TrialAndError),
)
SYSTEMS: Mapping[str, Variant] = {variant.name: variant for variant in BASELINES} | dict(VARIANTS)
"""Every system under test: the baselines and the variants of mats."""
