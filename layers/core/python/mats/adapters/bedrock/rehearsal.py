"""Models that are not asked: every request goes to who wants to see it, who answers in the model's place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mats.adapters.bedrock.chat import BedrockChat
from mats.adapters.bedrock.conversing import Converser, Reply, reply_of, tokens_of
from mats.adapters.bedrock.reranker import BedrockReranker
from mats.adapters.bedrock.writer import BedrockWriter
from mats.domain.prompt import Prompt
from mats.domain.usage import Prices

Answering = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""From a request of Converse to an answer of Converse's shape."""


@dataclass(frozen=True, slots=True)
class Rehearsal(Converser):
    """Makes the same models as `Bedrock` does, without a client: no request leaves the process."""

    prices: Prices
    answering: Answering

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """What is answered in the model's place."""
        answer = self.answering(request)
        usage = self.prices.usage(str(request["modelId"]), *tokens_of(answer))
        return reply_of(answer, usage, took_ms=0.0, replayed=True)

    def writer(self, model: str, prompt: Prompt) -> BedrockWriter:
        """The enrichment LLM."""
        return BedrockWriter(runtime=self, name=model, text=prompt)

    def reranker(self, model: str, prompt: Prompt) -> BedrockReranker:
        """The discovery LLM."""
        return BedrockReranker(runtime=self, name=model, text=prompt)

    def chat(self, model: str) -> BedrockChat:
        """A model that converses."""
        return BedrockChat(runtime=self, name=model)
