"""A cache of model replies on disk, so that a run can be resumed and repeated without cost, and a budget for it."""

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from mats import bootstrap
from mats.adapters.llm import ModelReply, ToolCall
from mats.domain.errors import NotPermitted, StorageUnusable
from mats.domain.prompts.usage import Prices, Usage
from mats.settings import Settings

_BUSY_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class TimedReply:
    """A reply, the milliseconds of its original call, and whether it came from the cache."""

    reply: ModelReply
    took_ms: float
    cached: bool


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
        return cls((settings.cache or bootstrap.user_cache()) / "model-replies.db")

    def get(self, request: Mapping[str, Any], prices: Prices) -> TimedReply | None:
        """The reply to exactly this request, which includes the service and the model, at today's prices."""
        with self._lock:
            row = self._connection.execute(
                "SELECT reply, took_ms FROM replies WHERE request = ?", (_key(request),)
            ).fetchone()
        if row is None:
            return None
        said = json.loads(row[0])
        reply = ModelReply(
            stop=said["stop"],
            calls=tuple(ToolCall(*call) for call in said["calls"]),
            text=said["text"],
            usage=prices.usage(str(request["model"]), *said["tokens"]),
        )
        return TimedReply(reply, row[1], cached=True)

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
class CachedCalls:
    """Makes each call once. A failed call is not stored; a cached reply is priced, but not metered."""

    cache: ReplyCache
    prices: Prices
    budget: Budget

    def send(self, request: Mapping[str, Any], call: Callable[[], ModelReply]) -> TimedReply:
        """The cached reply to a request, which has the key `model`, or the one that `call` returns.

        Raises:
            DependencyFailed: the model did not answer; NotPermitted if an operator has to act, BudgetSpent if there is
                no budget left for it.
        """
        if known := self.cache.get(request, self.prices):
            return known
        self.budget.begin_call()
        began = time.monotonic()
        reply = call()
        made = TimedReply(reply, (time.monotonic() - began) * 1_000, cached=False)
        self.budget.add(reply.usage)
        self.cache.put(request, made)
        return made
