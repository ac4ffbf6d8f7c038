"""The discovery LLM."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from mats.adapters.bedrock.conversing import Converser, Reply
from mats.domain.fence import encoded, visible
from mats.domain.profile import Profile
from mats.domain.prompt import Prompt, filled
from mats.domain.rerank_prompt import cards
from mats.domain.rerank_reply import known_type, parse_reply
from mats.ports import RerankResult

_TOKENS_AROUND, _TOKENS_PER_SCORE = 80, 6
"""Room for a reply about twice as long as a complete one: a cap, not an aim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BedrockReranker:
    """Judges all candidates of a query in one Converse call."""

    runtime: Converser
    name: str
    text: Prompt

    @property
    def prompt(self) -> str:
        """The hash of `prompts/rerank.md`."""
        return self.text.hash

    def rerank(self, query: str, candidates: Sequence[Profile]) -> RerankResult:
        """How well each candidate serves the query, in the order given; `void` says why if the reply is unusable.

        Raises:
            DependencyFailed: the model did not answer.
        """
        request = filled(self.text.request, {"query": encoded(visible(query)), "candidates": cards(candidates)})
        most = _TOKENS_AROUND + _TOKENS_PER_SCORE * len(candidates)
        reply = self.runtime.converse(self.name, self.text, request, max_tokens=most)
        replayed_ms = reply.took_ms if reply.replayed else None
        if reply.refused:
            return RerankResult(void=f"the model refused ({reply.stop})", usage=reply.usage, replayed_ms=replayed_ms)
        found = parse_reply(_spoken(reply), len(candidates), ended_early=reply.cut_off)
        return RerankResult(
            scores=found.scores,
            intent=known_type(found.type, candidates),
            usage=reply.usage,
            clipped=found.clipped,
            cut_off=found.cut_off,
            void=found.void,
            replayed_ms=replayed_ms,
        )


def _spoken(reply: Reply) -> str:
    """The reply as a text: the tool's arguments, else the words; arguments may themselves be a text."""
    if not reply.tool:
        return reply.text
    return reply.arguments if isinstance(reply.arguments, str) else json.dumps(reply.arguments)
