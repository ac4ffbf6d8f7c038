"""A reply cache for Converse on disk, so that a run can be resumed and repeated without cost, and a budget for it."""

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from mats import bootstrap
from mats.adapters.bedrock.converse import Converse, parse_response, token_counts
from mats.adapters.llm import ModelReply
from mats.domain.errors import NotPermitted, StorageUnusable
from mats.domain.prompts.usage import Prices, Usage
from mats.settings import Settings

_BUSY_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A Converse response as JSON, and the duration of the original call."""

    response: Mapping[str, Any]
    took_ms: float


class ReplyCache:
    """One SQLite file, keyed by the SHA-256 of the request's JSON. Safe for several threads and processes."""

    def __init__(self, path: Path) -> None:
        """Open or create the file.

        Raises:
            StorageUnusable: it cannot be opened, or is another file.
        """
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, isolation_level=None, timeout=_BUSY_TIMEOUT_S, check_same_thread=False
            )
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS replies"
                " (request BLOB PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, took_ms REAL NOT NULL)"
            )
        except (OSError, sqlite3.Error) as error:
            raise StorageUnusable(
                f"the reply cache {path} cannot be opened: {error}; move it away or set MATS_CACHE"
            ) from error

    @classmethod
    def open(cls, settings: Settings) -> "ReplyCache":
        return cls((settings.cache or bootstrap.user_cache()) / "replies.db")

    def get(self, request: Mapping[str, Any]) -> CachedResponse | None:
        """The response to exactly this request, which includes the model's id."""
        with self._lock:
            row = self._connection.execute(
                "SELECT reply, took_ms FROM replies WHERE request = ?", (_key(request),)
            ).fetchone()
        return None if row is None else CachedResponse(json.loads(row[0]), row[1])

    def put(self, request: Mapping[str, Any], cached: CachedResponse) -> None:
        """Store durably before returning; the first response to a request stays."""
        row = (_key(request), str(request["modelId"]), json.dumps(cached.response), cached.took_ms)
        with self._lock:
            self._connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", row)


def _key(request: Mapping[str, Any]) -> bytes:
    """The request by its hash, without the labels for Bedrock's log, which differ from run to run."""
    request = {name: value for name, value in request.items() if name != "requestMetadata"}
    return hashlib.sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode()).digest()


@dataclass(frozen=True, slots=True)
class TimedReply:
    """A reply, the milliseconds of its original call, and whether it came from the cache."""

    reply: ModelReply
    took_ms: float
    cached: bool


class BudgetSpent(NotPermitted):
    """The budget of a run is spent; the replies so far are cached."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """What a run may spend on calls that the cache does not answer. Safe for several threads.

    Dollars are known when a reply is there, so calls under way may exceed `max_usd`; `max_calls` is never exceeded.
    """

    max_usd: float | None = None
    """None: no limit."""
    max_calls: int | None = None
    """None: no limit."""
    usd: float = 0.0
    calls: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin_call(self) -> None:
        """Count a call.

        Raises:
            BudgetSpent: it may not be made.
        """
        with self._lock:
            if self.max_usd is not None and self.usd >= self.max_usd:
                self._refuse(f"${self.max_usd:,.2f}", "--max-usd")
            if self.max_calls is not None and self.calls >= self.max_calls:
                self._refuse(f"{self.max_calls:,} calls", "--max-calls")
            self.calls += 1

    def add(self, usage: Usage) -> None:
        """Count the cost of a call; one without a known price counts as a call alone."""
        with self._lock:
            self.usd += usage.usd or 0.0

    def _refuse(self, budget: str, option: str) -> NoReturn:
        raise BudgetSpent(
            f"the budget of {budget} is spent after {self.calls:,} calls (${self.usd:,.4f}); their replies are cached: "
            f"repeat the command with a higher {option} to go on"
        )


@dataclass(frozen=True, slots=True)
class CachedConverse:
    """Sends each request once. A failed call is not stored; a cached reply is priced, but not metered."""

    converse: Converse
    cache: ReplyCache
    prices: Prices
    budget: Budget = field(default_factory=Budget)

    def __call__(self, request: Mapping[str, Any]) -> ModelReply:
        return self.send(request).reply

    def send(self, request: Mapping[str, Any]) -> TimedReply:
        """The reply, cached or new.

        Raises:
            DependencyFailed: the model did not answer; NotPermitted if an operator has to act, BudgetSpent if there is
                no budget left for it.
        """
        if known := self.cache.get(request):
            usage = self.prices.usage(str(request["modelId"]), *token_counts(known.response))
            return TimedReply(parse_response(known.response, usage), known.took_ms, cached=True)
        self.budget.begin_call()
        began = time.monotonic()
        reply = self.converse(request)
        took_ms = (time.monotonic() - began) * 1_000
        self.budget.add(reply.usage)
        self.cache.put(request, CachedResponse(_to_response(reply), took_ms))
        return TimedReply(reply, took_ms, cached=False)


def _to_response(reply: ModelReply) -> dict[str, Any]:
    """A response as JSON that parses to the same reply."""
    uses = [{"toolUse": {"toolUseId": c.id, "name": c.tool, "input": c.arguments}} for c in reply.calls]
    return {
        "output": {"message": {"content": [*([{"text": reply.text}] if reply.text else []), *uses]}},
        "stopReason": reply.stop,
        "usage": {"inputTokens": reply.usage.input_tokens, "outputTokens": reply.usage.output_tokens},
    }


@dataclass(slots=True)
class RecordedConverse:
    """Converse for one query: records the calls, and the error that an operator must act on."""

    converse: CachedConverse
    calls: list[TimedReply] = field(default_factory=list)
    denied: NotPermitted | None = None

    def __call__(self, request: Mapping[str, Any]) -> ModelReply:
        try:
            call = self.converse.send(request)
        except NotPermitted as error:
            self.denied = error
            raise
        self.calls.append(call)
        return call.reply
