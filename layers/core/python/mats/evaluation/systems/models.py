"""The models of an evaluation, cached on disk: the encoder, and the LLMs on Bedrock if the settings enable them."""

import hashlib
import sqlite3
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mats import bootstrap
from mats.adapters.bedrock.converse import Converse, ask_through
from mats.evaluation.systems.cached_converse import Budget, CachedConverse, ReplyCache
from mats.ports import Encoder, Reranker, Vector, Writer
from mats.settings import TITAN, Settings

if TYPE_CHECKING:
    from mats.adapters.bedrock.factory import Bedrock


class CachedEncoder:
    """An encoder that caches documents, but not queries, whose encoding is measured."""

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder = encoder
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(folder / f"vectors-{encoder.name}.db", isolation_level=None)
        self._connection.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL)")

    @property
    def name(self) -> str:
        return self._encoder.name

    @property
    def dimension(self) -> int:
        return self._encoder.dimension

    def encode_query(self, text: str) -> Vector:
        return self._encoder.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        vectors = {key: vector for key in keys if (vector := self._get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        encoded = self._encoder.encode_documents(list(missing.values()))
        new = {key: vector for key, vector in zip(missing, encoded, strict=True) if vector is not None}
        self._connection.executemany(
            "INSERT OR IGNORE INTO vectors VALUES (?, ?)", [(key, vector.tobytes()) for key, vector in new.items()]
        )
        vectors |= new
        return [vectors.get(key) for key in keys]

    def _get(self, key: bytes) -> Vector | None:
        row = self._connection.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
        return None if row is None else array("f", row[0])


@dataclass(frozen=True, slots=True)
class QueryCache:
    """An encoder that encodes each query once."""

    encoder: Encoder
    vectors: dict[str, Vector] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_query(self, text: str) -> Vector:
        if text not in self.vectors:
            self.vectors[text] = self.encoder.encode_query(text)
        return self.vectors[text]

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        return self.encoder.encode_documents(texts)


def cached_encoder(settings: Settings, bedrock: "Bedrock | None" = None) -> Encoder | None:
    """The encoder of the settings; None if they say `none`. Titan is made by `bedrock`."""
    encoder = bootstrap.load_encoder(settings, bedrock)
    return CachedEncoder(encoder, settings.cache or bootstrap.user_cache()) if encoder else None


@dataclass(frozen=True)
class Models:
    """The models of these settings, each made at first use; replies of LLMs and document vectors are cached on disk."""

    settings: Settings
    budget: Budget = field(default_factory=Budget)
    """Of all language models together."""

    @cached_property
    def encoder(self) -> Encoder | None:
        return cached_encoder(self.settings, self._bedrock if self.settings.encoder.startswith(TITAN) else None)

    @property
    def offline(self) -> Settings:
        """The settings under which registries are filled: without writer and reranker."""
        return replace(self.settings, writer_model="none", rerank_model="none")

    @cached_property
    def _bedrock(self) -> "Bedrock":
        return bootstrap.batch_bedrock(self.settings)

    @cached_property
    def _cache(self) -> ReplyCache:
        return ReplyCache.open(self.settings)

    @cached_property
    def converse(self) -> CachedConverse:
        """Converse for rerankers and conversations.

        Raises:
            DependencyFailed: boto3 is not installed; NotPermitted if the AWS configuration cannot be used.
            StorageUnusable: the reply cache cannot be opened.
        """
        return CachedConverse(self._bedrock.online.converse, self._cache, bootstrap.prices(), self.budget)

    def reranker(self, model: str, converse: Converse | None = None) -> Reranker:
        """The production reranker with any Converse model, through `converse` if given."""
        from mats.adapters.llm import LlmReranker  # noqa: PLC0415 - boto3, if Bedrock is enabled

        return LlmReranker(ask=ask_through(converse or self.converse), name=model, text=bootstrap.prompt("rerank"))

    @cached_property
    def writer(self) -> Writer:
        from mats.adapters.llm import LlmWriter  # noqa: PLC0415 - boto3, if Bedrock is enabled

        converse = CachedConverse(self._bedrock.offline.converse, self._cache, bootstrap.prices(), self.budget)
        return LlmWriter(ask=ask_through(converse), name=self.settings.writer_model, text=bootstrap.prompt("enrich"))

    def lacking(self, needs: Collection[str]) -> str:
        """The reason why a system with these needs cannot run, with what to do; empty if it can."""
        if "llm" in needs and not self.settings.bedrock:
            return "needs an LLM: set MATS_BEDROCK=1 and give AWS credentials"
        if "llm" in needs and self.settings.rerank_model == "none":
            return "needs an LLM: MATS_RERANK_MODEL is none"
        if "encoder" in needs and self.encoder is None:
            return "needs an encoder: MATS_ENCODER is none"
        return ""
