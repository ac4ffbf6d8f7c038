"""Writer, reranker and encoder on Bedrock, each with a client of the right timeout; the models of a region."""

import json
import math
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from boto3.session import Session
from botocore.exceptions import BotoCoreError

from mats.adapters import aws
from mats.adapters.aws import call, client, unexpected_response
from mats.adapters.bedrock.client import BedrockClient, prompt_request
from mats.adapters.llm import LanguageModels, LlmReranker, LlmWriter, ModelReply, Question
from mats.adapters.threads import DaemonThreads
from mats.domain.errors import DependencyFailed, ModelRefused
from mats.domain.prompts.prompt import Prompt
from mats.domain.search.lookups import Vector
from mats.settings import COHERE

_MAX_BYTES = 8_000
"""Titan reads 8,192 tokens and 50,000 characters, Cohere more; no tokenizer makes more tokens than bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TitanEncoder:
    """Encodes one text per call, documents concurrently."""

    model: str
    dimension: int  # 1024, 512 or 256; Cohere's also 1536
    online: BedrockClient  # For queries
    offline: BedrockClient  # For documents
    threads: Executor

    @property
    def name(self) -> str:
        return f"{self.model}-{self.dimension}"

    def encode_query(self, text: str) -> Vector:
        return self._encode(self.online, text, "search_query")

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        results = list(self.threads.map(self._encode_or_error, texts))
        failed = [result for result in results if isinstance(result, DependencyFailed)]
        if failed and len(failed) == len(results):
            raise next((error for error in failed if not isinstance(error, ModelRefused)), failed[0])
        return [None if isinstance(result, DependencyFailed) else result for result in results]

    def _encode_or_error(self, text: str) -> Vector | DependencyFailed:
        try:
            return self._encode(self.offline, text, "search_document")
        except DependencyFailed as error:
            return error

    def _encode(self, client: BedrockClient, text: str, purpose: str) -> Vector:
        readable = text.encode()[:_MAX_BYTES].decode(errors="ignore")  # it starts with the most important fields
        if self.model.startswith(COHERE):
            body = {"texts": [readable], "input_type": purpose, "embedding_types": ["float"]}
            match client.invoke(self.model, {**body, "output_dimension": self.dimension}):
                case {"embeddings": {"float": [components]}}:
                    return self._unit(components)
            return self._unit(None)
        answer = client.invoke(self.model, {"inputText": readable, "dimensions": self.dimension, "normalize": True})
        return self._unit(answer.get("embedding") if isinstance(answer, dict) else None)

    def _unit(self, components: object) -> Vector:
        """The components as a vector of length 1.

        Raises DependencyFailed: too many, too few, not numbers, not finite, or all zero.
        """
        if not isinstance(components, list) or len(components) != self.dimension:
            got = f"{len(components)} components" if isinstance(components, list) else "no vector"
            raise DependencyFailed(f"{self.model} returned {got} instead of {self.dimension}")
        numbers = all(isinstance(c, int | float) and not isinstance(c, bool) for c in components)
        if not numbers or not all(abs(c) <= sys.float_info.max for c in components):
            raise DependencyFailed(f"{self.model} returned a vector with components that are not finite numbers")
        length = math.sqrt(sum(c * c for c in components))
        if length == 0 or not math.isfinite(length):
            raise DependencyFailed(f"{self.model} returned a zero vector")
        return array("f", (c / length for c in components))


_DIMENSION = 1024  # Of vectors
_CONNECTIONS = 256  # The number of concurrent requests of the service
_OFFLINE_TIMEOUT_S = 60


@dataclass(eq=False, kw_only=True)
class Bedrock(LanguageModels):
    """Makes writer, reranker and encoder."""

    region: str  # Empty: the one of the AWS configuration
    rerank_ms: float  # Timeout of a rerank call
    encode_ms: float  # Timeout of encoding a query
    concurrency: int  # Concurrent calls of the writer, and of the encoder for documents
    attempts: int = 1  # Of online calls; offline calls have at least two
    session: Session | None = None  # Shared with clients of other services; default: a new one
    _query_clients: list[BedrockClient] = field(default_factory=list)

    def warning(self) -> str:
        try:
            known = Session().get_credentials() is not None
        except BotoCoreError:
            known = False
        return "" if known else "No AWS credentials: answers come without an LLM until you configure them"

    @cached_property
    def _session(self) -> Session:
        return self.session or aws.session("Bedrock")

    def _client(self, **options: Any) -> BedrockClient:
        return BedrockClient(self.meter, region=self.region, session=self._session, **options)

    @cached_property
    def offline(self) -> BedrockClient:
        """Long timeout, at least two attempts; further retries come from event redelivery."""
        attempts = max(2, self.attempts)
        return self._client(timeout_s=_OFFLINE_TIMEOUT_S, attempts=attempts, connections=self.concurrency)

    @cached_property
    def online(self) -> BedrockClient:
        """The timeout of a rerank call; in production one attempt."""
        return self._client(timeout_s=self.rerank_ms / 1000, attempts=self.attempts, connections=_CONNECTIONS)

    def openers(self) -> list[Callable[[], None]]:
        return [client.open_connection for client in (self.online, *self._query_clients)]

    def ask(self, question: Question) -> ModelReply:
        return self.send(prompt_request(question))

    def ask_patiently(self, question: Question) -> ModelReply:
        return self.offline.converse(prompt_request(question))

    def send(self, request: Mapping[str, Any]) -> ModelReply:
        """The reply to a Converse request, within the timeout of a rerank call."""
        return self.online.converse(request)

    def writer(self, model: str, prompt: Prompt) -> LlmWriter:
        _ = self.offline  # made with its user: nobody waits for it later, and a fault of the AWS settings shows at once
        return super().writer(model, prompt)

    def reranker(self, model: str, prompt: Prompt) -> LlmReranker:
        _ = self.online
        return super().reranker(model, prompt)

    def encoder(self, model: str) -> TitanEncoder:
        """Titan, with the timeout of the encoder for queries and the offline client for documents."""
        online = self._client(timeout_s=self.encode_ms / 1000, attempts=self.attempts, connections=_CONNECTIONS)
        self._query_clients.append(online)
        threads = DaemonThreads(self.concurrency, "titan")
        return TitanEncoder(model=model, dimension=_DIMENSION, online=online, offline=self.offline, threads=threads)


_TIMEOUT_S = 20
_ATTEMPTS = 3


def list_models(region: str) -> dict[str, Any]:
    """The responses of ListFoundationModels and ListInferenceProfiles as one JSON value, times as ISO 8601.

    Raises DependencyFailed: Bedrock did not answer; NotPermitted if an operator has to act.
    """
    bedrock = client(
        "bedrock", region=region, timeout_s=_TIMEOUT_S, attempts=_ATTEMPTS, connections=1, called="Bedrock"
    )
    models = call("Bedrock's list of models", bedrock.list_foundation_models)
    pages = bedrock.get_paginator("list_inference_profiles").paginate(PaginationConfig={"PageSize": 1_000})
    profiles = call("Bedrock's list of inference profiles", pages.build_full_result)
    found = {}
    for key, answer in (("modelSummaries", models), ("inferenceProfileSummaries", profiles)):
        if not isinstance(answer.get(key), list):
            raise unexpected_response("Bedrock")
        found[key] = answer[key]
    # botocore parses times into `datetime`
    listed: dict[str, Any] = json.loads(json.dumps(found, default=datetime.isoformat))
    return listed
