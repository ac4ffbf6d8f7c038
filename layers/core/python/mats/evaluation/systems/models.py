"""The models of an evaluation: the encoder, and the LLMs that the settings name.

Replies are cached on disk, so that a run can be resumed, and a budget limits what new ones cost.
"""

import hashlib
import json
import sqlite3
import threading
import time
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mats.adapters.llm import AskModel, LlmReranker, LlmWriter, ModelReply, Question, ToolCall
from mats.bootstrap import models as bootstrap
from mats.domain.errors import NotPermitted, StorageUnusable
from mats.domain.profile.profile import Profile
from mats.domain.prompts.rerank_reply import RerankResult
from mats.domain.prompts.usage import Prices, Usage
from mats.domain.search.lookups import Vector
from mats.ports import NO_LABELS, Encoder, Labels, LanguageBound, Reranker, Writer
from mats.settings import Settings
from mats.usecases.models import WrappedEncoder
from mats.usecases.stages import Budgets

if TYPE_CHECKING:
    from mats.adapters.bedrock.factory import Bedrock
    from mats.adapters.chat_completions.client import ChatCompletions

_BUSY_TIMEOUT_S = 60
BATCH_BUDGETS = Budgets(encode_ms=60_000, retrieve_ms=60_000, rerank_ms=120_000)
"""Of evaluations: a lost answer is worse than a late one."""


@dataclass(frozen=True, slots=True)
class TimedReply:
    """A reply, the milliseconds of its original call, and whether it came from the cache."""

    reply: ModelReply
    took_ms: float
    cached: bool


def _open_cache(path: Path, table: str) -> sqlite3.Connection:
    """Open or create a file with this table. Raises StorageUnusable: it cannot be opened, or is another file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
    except (OSError, sqlite3.Error) as error:
        raise StorageUnusable(f"the cache {path} cannot be opened: {error}; move it away or set MATS_CACHE") from error
    return connection


class ReplyCache:
    """One SQLite file, keyed by the SHA-256 of the request's JSON. Safe for several threads and processes."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises StorageUnusable: it cannot be opened, or is another file."""
        self._lock = threading.Lock()
        columns = "request BLOB PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, took_ms REAL NOT NULL"
        self._connection = _open_cache(path, f"replies ({columns})")

    def get(self, request: Mapping[str, Any], prices: Prices) -> TimedReply | None:
        """The reply to exactly this request, which includes the service and the model, at today's prices."""
        with self._lock:
            row = self._connection.execute(
                "SELECT reply, took_ms FROM replies WHERE request = ?", (_key(request),)
            ).fetchone()
        if row is None:
            return None
        said = json.loads(row[0])
        calls = tuple(ToolCall(*call) for call in said["calls"])
        usage = prices.usage(str(request["model"]), *said["tokens"])
        return TimedReply(
            ModelReply(stop=said["stop"], calls=calls, text=said["text"], usage=usage), row[1], cached=True
        )

    def put(self, request: Mapping[str, Any], made: TimedReply) -> None:
        """Store durably before returning; the first reply to a request stays."""
        reply = made.reply
        said = {
            "stop": reply.stop,
            "calls": [(call.id, call.tool, call.arguments) for call in reply.calls],
            "text": reply.text,
            "tokens": (reply.usage.input_tokens, reply.usage.output_tokens),
        }
        row = (_key(request), str(request["model"]), json.dumps(said), made.took_ms)
        with self._lock:
            self._connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", row)

    def reply_to(
        self, prices: Prices, budget: "Budget", request: Mapping[str, Any], call: Callable[[], ModelReply]
    ) -> TimedReply:
        """The cached reply to a request, which has the key `model`, or the one that `call` returns.

        A failed call is not stored; a cached reply is priced, but not metered. Raises DependencyFailed: the model did
        not answer; NotPermitted if an operator has to act, BudgetSpent if there is no budget left for it.
        """
        if known := self.get(request, prices):
            return known
        budget.begin_call()
        began = time.monotonic()
        made = TimedReply(call(), (time.monotonic() - began) * 1_000, cached=False)
        budget.add(made.reply.usage)
        self.put(request, made)
        return made


def _key(request: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode()).digest()


@dataclass(slots=True)
class CallLog:
    """The calls of one answer, and the error among them that an operator must act on."""

    made: list[TimedReply] = field(default_factory=list)
    denied: NotPermitted | None = None


class BudgetSpent(NotPermitted):
    """The budget of a run is spent; the replies so far are cached."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """The budget of a run for calls that the cache does not answer. Safe for several threads.

    Dollars are known when a reply is there, so calls under way may exceed `max_usd`; `max_calls` is never exceeded.
    """

    max_usd: float | None = None  # None: no limit
    max_calls: int | None = None  # None: no limit
    usd: float = 0.0
    calls: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin_call(self) -> None:
        """Count a call. Raises BudgetSpent: it may not be made."""
        with self._lock:
            spent = ""
            if self.max_usd is not None and self.usd >= self.max_usd:
                spent, option = f"${self.max_usd:,.2f}", "--max-usd"
            elif self.max_calls is not None and self.calls >= self.max_calls:
                spent, option = f"{self.max_calls:,} calls", "--max-calls"
            if spent:
                raise BudgetSpent(
                    f"the budget of {spent} is spent after {self.calls:,} calls (${self.usd:,.4f}); their replies are "
                    f"cached: repeat the command with a higher {option} to go on"
                )
            self.calls += 1

    def add(self, usage: Usage) -> None:
        """Count the cost of a call; one without a known price counts as a call alone."""
        with self._lock:
            self.usd += usage.usd or 0.0


@dataclass(frozen=True)
class CachedEncoder(WrappedEncoder):
    """An encoder that caches documents, but not queries, whose encoding is measured."""

    folder: Path

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        table = "vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL)"
        return _open_cache(self.folder / f"vectors-{self.name}.db", table)

    def reads(self, text: str) -> bool:
        return not isinstance(self.encoder, LanguageBound) or self.encoder.reads(text)

    def has_words(self, text: str) -> bool:
        return not isinstance(self.encoder, LanguageBound) or self.encoder.has_words(text)

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
    budget: Budget = field(default_factory=Budget)  # Of all language models together
    recorded: AskModel | None = None  # Replies in place of a service's; neither cached nor limited

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
        names = bootstrap.model_names(self.settings)
        return dict.fromkeys(names, "recorded") if self.recorded else names

    @cached_property
    def _bedrock(self) -> "Bedrock":
        return bootstrap.bedrock(self.settings, BATCH_BUDGETS, attempts=8)

    @cached_property
    def server(self) -> "Bedrock | ChatCompletions":
        return bootstrap.server(self.settings, BATCH_BUDGETS) if self.settings.llm_url else self._bedrock

    @cached_property
    def _reply_to(self) -> Callable[..., TimedReply]:
        cache = ReplyCache((self.settings.cache or bootstrap.user_cache()) / "model-replies.db")
        return partial(cache.reply_to, bootstrap.prices(), self.budget)

    def send_once(self, request: Mapping[str, Any], call: Callable[[], ModelReply]) -> TimedReply:
        """The reply to a request, cached or new. Raises as `ReplyCache.reply_to`, or StorageUnusable: no cache."""
        whole = {"service": self.settings.llm_url or "bedrock", **request}
        return self._reply_to(whole, call)

    def ask(self, question: Question) -> TimedReply:
        """The reply to a question, recorded, cached or new; raises as `send_once` does."""
        if self.recorded:
            return TimedReply(self.recorded(question), 0.0, cached=True)
        prompt = question.prompt
        request = {
            "model": question.model,
            "prompt": [prompt.system, prompt.tool, prompt.parts["plain"]],
            "texts": question.texts,
            "limits": [question.max_tokens, dict(question.lengths)],
        }
        return self.send_once(request, lambda: self.server.ask(question))

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

    def lacking(self, needs: Collection[str]) -> str:
        """The reason why a system with these needs cannot run, with what to do; empty if it can."""
        if {"llm", "conversation"} & set(needs):
            if not (self.settings.has_llm or self.recorded):
                return "needs an LLM: set MATS_LLM_URL and MATS_LLM_MODEL, or MATS_BEDROCK=1 with AWS credentials"
            if self.settings.rerank_model == "none":
                return "needs an LLM: MATS_RERANK_MODEL is none"
        if "conversation" in needs and self.recorded:
            return "has no recording: set MATS_LLM_URL to a model server, or MATS_BEDROCK=1 instead"
        if "encoder" in needs and self.encoder is None:
            return "needs an encoder: MATS_ENCODER is none"
        return ""
