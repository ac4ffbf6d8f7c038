"""Writer and reranker of one model server, each with a client of the right timeout."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from mats.adapters.chat_completions.client import ChatClient, Forms
from mats.adapters.chat_completions.form import Output
from mats.adapters.llm import LlmReranker, LlmWriter, Meter, ModelReply, Question
from mats.domain.errors import DependencyFailed
from mats.domain.prompts.prompt import Prompt
from mats.domain.prompts.usage import Prices

_CONNECTIONS = 256
"""The number of concurrent requests of the service."""
_OFFLINE_TIMEOUT_S = 120
"""A model on a laptop writes ten tokens a second."""


class ChatCompletions:
    """Makes writer and reranker, which share a meter. No call is made before one is used."""

    def __init__(
        self, prices: Prices, *, url: str, key: str, output: Output | None, rerank_ms: float, concurrency: int
    ) -> None:
        """Make no call yet.

        Args:
            prices: For the cost of usage.
            url: The address before `/chat/completions`.
            key: Empty: the server asks for none.
            output: The way to JSON; None: whichever the server takes.
            rerank_ms: Timeout of a rerank call.
            concurrency: Concurrent calls of the writer.
        """
        self.meter = Meter(prices)
        self._url, self._key, self._forms = url, key, Forms(output)
        self._rerank_s, self._concurrency = rerank_ms / 1000, concurrency

    def _client(self, timeout_s: float, connections: int) -> ChatClient:
        return ChatClient(
            self._url, self._key, meter=self.meter, forms=self._forms, timeout_s=timeout_s, connections=connections
        )

    @cached_property
    def _offline(self) -> ChatClient:
        return self._client(_OFFLINE_TIMEOUT_S, self._concurrency)

    @cached_property
    def _online(self) -> ChatClient:
        return self._client(self._rerank_s, _CONNECTIONS)

    def warning(self) -> str:
        """The reason why the models cannot answer; empty if the server can be reached."""
        try:
            self._online.open_connection()
        except DependencyFailed as error:
            return f"Answers come without an LLM until its server answers: {error}"
        return ""

    def openers(self) -> list[Callable[[], None]]:
        """Functions that open the connections of the models that answers need; none asks a model."""
        return [self._online.open_connection]

    def ask(self, question: Question) -> ModelReply:
        """The reply to a question, within the timeout of a rerank call."""
        return self._online.ask(question)

    def send(self, request: Mapping[str, Any]) -> ModelReply:
        """The reply to a request of chat completions, within the timeout of a rerank call."""
        return self._online.send(request)

    def writer(self, model: str, prompt: Prompt) -> LlmWriter:
        """The enrichment LLM."""
        return LlmWriter(ask=self._offline.ask, name=model, text=prompt)

    def reranker(self, model: str, prompt: Prompt) -> LlmReranker:
        """The discovery LLM."""
        return LlmReranker(ask=self._online.ask, name=model, text=prompt)
