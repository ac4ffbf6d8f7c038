"""The reranker."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from mats.adapters.llm.question import AskModel, ModelReply, Question
from mats.domain.profile.profile import Profile
from mats.domain.prompts.prompt import Prompt, fill_template
from mats.domain.prompts.rerank_prompt import cards
from mats.domain.prompts.rerank_reply import known_type, parse_reply
from mats.domain.text.fence import encode_json, visible
from mats.ports import NO_LABELS, Labels, RerankResult

_TOKENS_AROUND, _TOKENS_PER_SCORE = 80, 6
"""The token limit is about twice the length of a complete reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmReranker:
    """Scores all candidates of a query in one call; asks for the type only if a candidate has type tags."""

    ask: AskModel
    name: str
    text: Prompt

    @property
    def prompt(self) -> str:
        """The hash of `prompts/rerank.md`."""
        return self.text.hash

    def rerank(self, query: str, candidates: Sequence[Profile], labels: Labels = NO_LABELS) -> RerankResult:
        request = fill_template(
            self.text.request, {"query": encode_json(visible(query)), "candidates": cards(candidates)}
        )
        has_types = any(profile.type_tags for profile in candidates)
        prompt = self.text.variant("with_type") if has_types else self.text
        question = Question(
            model=self.name,
            prompt=prompt,
            texts=(request,),
            max_tokens=_TOKENS_AROUND + _TOKENS_PER_SCORE * len(candidates),
            lengths={"s": len(candidates)},
            labels=labels,
        )
        reply = self.ask(question)
        if reply.is_refusal:
            return RerankResult(void=f"the model refused ({reply.stop})", usage=reply.usage)
        found = parse_reply(_text_of(reply), len(candidates), ended_early=reply.is_cut_off)
        return RerankResult(
            scores=found.scores,
            intent=known_type(found.type, candidates),
            usage=reply.usage,
            clipped=found.clipped,
            cut_off=found.cut_off,
            void=found.void,
        )


def _text_of(reply: ModelReply) -> str:
    """The tool's arguments as JSON, or its text; arguments may themselves be text."""
    if not reply.tool:
        return reply.text
    return reply.arguments if isinstance(reply.arguments, str) else json.dumps(reply.arguments)
