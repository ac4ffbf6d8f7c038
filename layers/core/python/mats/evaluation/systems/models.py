"""The models of an evaluation, cached on disk: the encoder, and the LLMs that the settings name."""

import hashlib
import sqlite3
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mats import bootstrap
from mats.adapters.llm import AskModel, LlmReranker, LlmWriter, ModelReply, Question
from mats.domain.errors import NotPermitted
from mats.domain.profile.profile import Profile
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.systems.replies import Budget, CachedCalls, CallLog, ReplyCache, TimedReply
from mats.ports import NO_LABELS, Encoder, Labels, LanguageBound, Reranker, RerankResult, Vector, Writer
from mats.settings import Settings
from mats.usecases.models import WrappedEncoder

if TYPE_CHECKING:
    from mats.adapters.bedrock.factory import Bedrock
    from mats.adapters.chat_completions.client import ChatCompletions
    from mats.adapters.recordings import Recordings


@dataclass(frozen=True)
class CachedEncoder(WrappedEncoder):
    """An encoder that caches documents, but not queries, whose encoding is measured."""

    folder: Path

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        self.folder.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.folder / f"vectors-{self.name}.db", isolation_level=None)
        connection.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        return connection

    def reads(self, text: str) -> bool:
        return not isinstance(self.encoder, LanguageBound) or self.encoder.reads(text)

    def knows(self, word: str) -> bool:
        return isinstance(self.encoder, LanguageBound) and self.encoder.knows(word)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        vectors = {key: vector for key in keys if (vector := self._get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        encoded = self.encoder.encode_documents(list(missing.values()))
        new = {key: vector for key, vector in zip(missing, encoded, strict=True) if vector is not None}
        self._connection.executemany(
            "INSERT OR IGNORE INTO vectors VALUES (?, ?)", [(key, vector.tobytes()) for key, vector in new.items()]
        )
        vectors |= new
        return [vectors.get(key) for key in keys]

    def _get(self, key: bytes) -> Vector | None:
        row = self._connection.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
        return None if row is None else array("f", row[0])


class _BlindReranker(LlmReranker):
    def rerank(self, query: str, candidates: Sequence[Profile], labels: Labels = NO_LABELS) -> RerankResult:
        return super().rerank(query, [p.model_copy(update={"provider": ""}) for p in candidates], labels)


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
        return cached_encoder(self.settings, self._bedrock if self.settings.has_bedrock_encoder else None)

    @property
    def offline(self) -> Settings:
        """The settings under which registries are filled: without writer and reranker; a writer given describes all."""
        return replace(self.settings, writer_model="none", rerank_model="none", enrich="all")

    @property
    def names(self) -> Mapping[str, str]:
        """The language models by role, `reranker` and `writer`; `none` without."""
        return bootstrap.model_names(self.settings)

    @cached_property
    def recordings(self) -> "Recordings | None":
        """The recorded replies, if MATS_LLM_URL names some; they are neither cached nor limited."""
        return bootstrap.recordings(folder) if (folder := self.settings.llm_recordings) else None

    @cached_property
    def _bedrock(self) -> "Bedrock":
        return bootstrap.batch_bedrock(self.settings)

    @cached_property
    def _server(self) -> "Bedrock | ChatCompletions":
        return bootstrap.server(self.settings, bootstrap.BATCH_BUDGETS) if self.settings.llm_url else self._bedrock

    @cached_property
    def _calls(self) -> CachedCalls:
        return CachedCalls(ReplyCache.open(self.settings), bootstrap.prices(), self.budget)

    def send(self, request: Mapping[str, Any]) -> TimedReply:
        """The reply to a request of a conversation, as the service takes it (`speaks_converse`), cached or new.

        Raises:
            DependencyFailed: the model did not answer, or boto3 is not installed; NotPermitted if an operator has to
                act, BudgetSpent if there is no budget left for it.
            StorageUnusable: the reply cache cannot be opened.
        """
        model = request["modelId" if self.speaks_converse else "model"]
        return self._calls.send(
            {"service": self._service, "model": model, "request": request}, lambda: self._server.send(request)
        )

    @property
    def speaks_converse(self) -> bool:
        """True if requests are Bedrock's, not those of chat completions."""
        return not self.settings.llm_url

    @property
    def _service(self) -> str:
        return self.settings.llm_url or "bedrock"

    def ask(self, question: Question) -> TimedReply:
        """The reply to a question, recorded, cached or new; raises as `send` does."""
        if self.recordings:
            return TimedReply(self.recordings.ask(question), 0.0, cached=True)
        prompt = question.prompt
        request = {
            "service": self._service,
            "model": question.model,
            "prompt": [prompt.system, prompt.tool, prompt.parts["plain"]],
            "texts": question.texts,
            "limits": [question.max_tokens, dict(question.lengths)],
        }
        return self._calls.send(request, lambda: self._server.ask(question))

    def reranker(self, calls: CallLog | None = None, *, blind: bool = False) -> Reranker:
        """The production reranker with the settings' model; `calls` gets its calls. A `blind` one sees no providers."""
        made = _BlindReranker if blind else LlmReranker
        return made(ask=self._ask_into(calls), name=self.names["reranker"], text=bootstrap.prompt("rerank"))

    @cached_property
    def writer(self) -> Writer:
        return LlmWriter(ask=self._ask_into(None), name=self.names["writer"], text=bootstrap.prompt("enrich"))

    def _ask_into(self, calls: CallLog | None) -> AskModel:
        log = calls or CallLog()

        def ask(question: Question) -> ModelReply:
            try:
                call = self.ask(question)
            except NotPermitted as error:
                log.denied = error
                raise
            log.made.append(call)
            return call.reply

        return ask

    def answerable(self, dataset: Dataset) -> Dataset:
        """The data set with the queries that its language model can answer: of recordings, the recorded and judged."""
        if self.recordings is None:
            return dataset
        known = set.union(*self.recordings.ids(dataset.name))
        return replace(dataset, queries=[query for query in dataset.queries if query.id in known])

    def lacking(self, needs: Collection[str]) -> str:
        """The reason why a system with these needs cannot run, with what to do; empty if it can."""
        if {"llm", "conversation"} & set(needs):
            if not self.settings.has_llm:
                return "needs an LLM: set MATS_LLM_URL and MATS_LLM_MODEL, or MATS_BEDROCK=1 with AWS credentials"
            if self.settings.rerank_model == "none":
                return "needs an LLM: MATS_RERANK_MODEL is none"
        if "conversation" in needs and self.recordings:
            return "has no recording: set MATS_LLM_URL to a model server, or MATS_BEDROCK=1 instead"
        if "encoder" in needs and self.encoder is None:
            return "needs an encoder: MATS_ENCODER is none"
        return ""
