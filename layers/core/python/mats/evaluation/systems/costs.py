"""Cost estimates before a run: calls times measured tokens per call."""

from dataclasses import dataclass

from mats import bootstrap
from mats.domain.usage import Usage
from mats.evaluation.systems import search_and_pick, trial_and_error
from mats.evaluation.systems.catalogue import Variant
from mats.settings import Settings

_TURNS = {"search-and-pick": search_and_pick.ROUNDS, "trial-and-err": trial_and_error.ROUNDS}
"""The most calls per query; other systems make one."""
_TOKENS = {"full-ctx": (120_700, 13), "search-and-pick": (1_400, 44), "trial-and-err": (3_500, 13)}
"""Tokens in and out per call on `tools`, 7,270 capabilities: evaluation/results/experiment-efficiency.json."""
_RERANK_TOKENS, _CANDIDATE_TOKENS = (279, 8), (63, 3)
"""Tokens in and out of a rerank call, and per candidate: evaluation/results/bench-rerank.json."""
_WRITER_TOKENS = (650, 300)
"""Tokens in and out of a writer call: the mean prompt of 1,000 tools; a quarter of the reply's limit."""
TOKENIZER = "WordPiece of all-MiniLM-L6-v2"
"""Counted the tokens above; the models' own tokenizers are not published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """Expected calls and usage of a run without cached replies; `usage.usd` is None if the price is not known."""

    what: str
    model: str
    calls: int
    usage: Usage


def estimate_cost(variant: Variant, settings: Settings, queries: int, *, what: str = "") -> CostEstimate:
    """Nothing for a system without an LLM."""
    calls = queries * _TURNS.get(variant.name, 1) if "llm" in variant.needs else 0
    fixed, candidate = _RERANK_TOKENS, _CANDIDATE_TOKENS
    rerank_tokens = fixed[0] + settings.k * candidate[0], fixed[1] + settings.k * candidate[1]
    return _estimate(what or variant.name, settings.rerank_model, calls, _TOKENS.get(variant.name, rerank_tokens))


def estimate_writing_cost(settings: Settings, registrations: int, *, what: str = "enrichment") -> CostEstimate:
    return _estimate(what, settings.writer_model, registrations, _WRITER_TOKENS)


def _estimate(what: str, model: str, calls: int, tokens: tuple[int, int]) -> CostEstimate:
    usage = bootstrap.prices().usage(model, calls * tokens[0], calls * tokens[1])
    return CostEstimate(what=what, model=model, calls=calls, usage=usage)
