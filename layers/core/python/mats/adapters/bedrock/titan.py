"""Titan Embed Text V2 and Cohere Embed v4: vectors of unit length."""

import math
import sys
from array import array
from collections.abc import Sequence

from mats.adapters.bedrock.client import BedrockClient
from mats.adapters.threads import DaemonThreads
from mats.domain.errors import DependencyFailed, ModelRefused
from mats.ports import Vector
from mats.settings import COHERE

_MAX_BYTES = 8_000
"""Titan reads 8,192 tokens and 50,000 characters, Cohere more; no tokenizer makes more tokens than bytes."""


class TitanEncoder:
    """Encodes one text per call, documents concurrently."""

    def __init__(
        self, *, model: str, dimension: int, online: BedrockClient, offline: BedrockClient, concurrency: int
    ) -> None:
        """`online` is the client for queries, `offline` for documents, with `concurrency` concurrent calls."""
        self._model, self._dimension = model, dimension
        self._online, self._offline = online, offline
        self._pool = DaemonThreads(concurrency, "titan")

    @property
    def name(self) -> str:
        return f"{self._model}-{self._dimension}"

    @property
    def dimension(self) -> int:
        """1024, 512 or 256; Cohere's also 1536."""
        return self._dimension

    def encode_query(self, text: str) -> Vector:
        return self._encode(self._online, text, "search_query")

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        results = list(self._pool.map(self._encode_or_error, texts))
        failed = [result for result in results if isinstance(result, DependencyFailed)]
        if failed and len(failed) == len(results):
            raise next((error for error in failed if not isinstance(error, ModelRefused)), failed[0])
        return [None if isinstance(result, DependencyFailed) else result for result in results]

    def _encode_or_error(self, text: str) -> Vector | DependencyFailed:
        try:
            return self._encode(self._offline, text, "search_document")
        except DependencyFailed as error:
            return error

    def _encode(self, client: BedrockClient, text: str, purpose: str) -> Vector:
        readable = text.encode()[:_MAX_BYTES].decode(errors="ignore")  # it starts with the most important fields
        if self._model.startswith(COHERE):
            body = {"texts": [readable], "input_type": purpose, "embedding_types": ["float"]}
            match client.invoke(self._model, {**body, "output_dimension": self._dimension}):
                case {"embeddings": {"float": [components]}}:
                    return self._unit(components)
            return self._unit(None)
        answer = client.invoke(self._model, {"inputText": readable, "dimensions": self._dimension, "normalize": True})
        return self._unit(answer.get("embedding") if isinstance(answer, dict) else None)

    def _unit(self, components: object) -> Vector:
        """The components as a vector of length 1.

        Raises:
            DependencyFailed: too many, too few, not numbers, not finite, or all zero.
        """
        if not isinstance(components, list) or len(components) != self._dimension:
            got = f"{len(components)} components" if isinstance(components, list) else "no vector"
            raise DependencyFailed(f"{self._model} returned {got} instead of {self._dimension}")
        numbers = all(isinstance(c, int | float) and not isinstance(c, bool) for c in components)
        if not numbers or not all(abs(c) <= sys.float_info.max for c in components):
            raise DependencyFailed(f"{self._model} returned a vector with components that are not finite numbers")
        length = math.sqrt(sum(c * c for c in components))
        if length == 0 or not math.isfinite(length):
            raise DependencyFailed(f"{self._model} returned a zero vector")
        return array("f", (c / length for c in components))
