"""Wide log records: one for each answer, enough to replay it, and one for each batch of changes."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Feedback
from mats.domain.profile.change_result import ChangeResult
from mats.domain.profile.profile import Refusal
from mats.domain.prompts.usage import Usage
from mats.domain.ranking.parts import Part
from mats.domain.ranking.query import ANYWHERE, Scope
from mats.domain.shortlist.shortlist import Result, Shortlist
from mats.domain.text.fence import escape_hidden
from mats.ports import NamespaceChange, RequestHandled

LOGGER = logging.getLogger("mats")
_CONTROLS = {code: f"\\x{code:02x}" for code in range(32) if chr(code) != "\t"}


class LineFormatter(logging.Formatter):
    """A record begins a line; further lines of its message or traceback are indented, so that no text forges a record.

    Hidden and control characters are escaped.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).splitlines()
        return "\n    ".join(escape_hidden(line.translate(_CONTROLS)) for line in lines)


def log_line(record: Mapping[str, Any]) -> str:
    """A record as JSON in ASCII, which no text in it can break into lines."""
    return json.dumps(record).replace("\x7f", "\\u007f")


class LogText:
    """The line of a record; formatters that write JSON take its fields."""

    __slots__ = ("fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    def __str__(self) -> str:
        return log_line(self.fields)


class JsonFormatter(logging.Formatter):
    """A record is one line: a JSON object in ASCII, with the names of Lambda's own JSON log.

    The fields of a wide record stand beside them; any other record has a `message`.
    """

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"timestamp": time, "level": record.levelname, "logger": record.name}
        wide = record.args[0] if isinstance(record.args, tuple) and record.args else None
        line |= wide.fields if isinstance(wide, LogText) else {"message": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            line |= {
                "errorType": record.exc_info[0].__name__,
                "errorMessage": str(record.exc_info[1]),
                "stackTrace": self.formatException(record.exc_info).splitlines(),
            }
        return log_line(line)


def log_answer(
    shortlist: Shortlist,
    audiences: Collection[str],
    *,
    spell_out: bool,
    scope: Scope = ANYWHERE,
    request_id: str = "",
) -> None:
    """Log a shortlist; without `spell_out`, the query by its hash. `request_id` is that of API Gateway's access log."""
    record = _record(shortlist, audiences, spell_out=spell_out)
    if request_id:
        record["request_id"] = request_id
    if scope != ANYWHERE:
        record["scope"] = {
            "homes": sorted(scope.exact_namespaces),
            "tag_choices": sorted(map(sorted, scope.tag_choices)),
        }
    LOGGER.info("%s", LogText(record))


def log_feedback(feedback: Feedback, recorded: int, *, spell_out: bool, request_id: str = "") -> None:
    """Log what a caller reported; without `spell_out`, its own words by their hash."""
    record: dict[str, Any] = {
        "event": "feedback",
        "query_id": feedback.query_id,
        "outcomes": [{"id": outcome.id, "event": outcome.event} for outcome in feedback.outcomes],
        "recorded": recorded,
    }
    if feedback.missing:
        record |= {"missing": feedback.missing} if spell_out else {"missing_hash": _hash(feedback.missing)}
    if request_id:
        record["request_id"] = request_id
    LOGGER.info("%s", LogText(record))


def log_batch(outcomes: Mapping[Id, ChangeResult], usage: Usage) -> None:
    """Log the outcomes and the usage of a batch of changes, and the ids of those that will be delivered again."""
    record = {
        "event": "enriched",
        "outcomes": Counter(outcomes.values()),
        "again": sorted(id for id, outcome in outcomes.items() if not outcome.is_final),
        **asdict(usage),
    }
    LOGGER.info("%s", LogText(record))


def log_spread(change: NamespaceChange, sent: int) -> None:
    """Log how many changes of capabilities the change of a namespace's row led to."""
    LOGGER.info("%s", LogText({"event": "spread", "namespace": change.namespace, "after": change.after, "sent": sent}))


def log_refusals(refused: Collection[Refusal]) -> None:
    """Log each model that refuses every request, with its cause and how many capabilities or answers lack it."""
    for refusal, count in Counter(refused).items():
        record = {"event": "model_refused", **refusal.model_dump(), "count": count}
        LOGGER.error("%s", LogText(record))


def log_request(request: RequestHandled) -> None:
    """Log a request of the local service."""
    record = {
        "event": "request",
        "request_id": request.request_id,
        "method": request.method,
        "route": request.route,
        "status": request.status,
        "ms": round(request.took_ms, 2),
    }
    if "traceparent" in request.carrier:
        record["traceparent"] = request.carrier["traceparent"]
    LOGGER.info("%s", LogText(record))


def _record(shortlist: Shortlist, audiences: Collection[str], *, spell_out: bool) -> dict[str, Any]:
    query, trace = shortlist.query, shortlist.trace
    text = {"query": query.text} if spell_out else {"query_hash": _hash(query.text)}
    return {
        "event": "discovered",
        "query_id": shortlist.query_id,
        **text,
        "filter": {"kinds": query.kinds, "namespaces": query.namespaces, "tags": query.tags},
        "audiences": sorted(audiences),
        **({"parts": [_part(part, spell_out) for part in shortlist.parts]} if shortlist.parts else {}),
        "verdict": shortlist.verdict,
        "intent": shortlist.intent,
        "degraded": trace.degraded,
        "without": trace.without,
        "faults": trace.faults,
        "candidates": [_candidate(result, position) for position, result in enumerate(shortlist.ranked, start=1)],
        "shown": shortlist.shown,
        "took_ms": {stage: round(ms, 2) for stage, ms in trace.took_ms.items()},
        "input_tokens": trace.usage.input_tokens,
        "output_tokens": trace.usage.output_tokens,
        "usd": trace.usage.usd,
        "judged": asdict(trace.rerank),
        "index": trace.index,
        "models": {"rerank": trace.reranker, "embed": trace.encoder},
        "prompt": trace.prompt,
        "calibration": asdict(trace.calibration) if trace.calibration else None,
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _part(part: Part, spell_out: bool) -> dict[str, Any]:
    text = {"query": part.text} if spell_out else {"query_hash": _hash(part.text)}
    return {**text, "verdict": part.verdict, "results": part.results}


def _candidate(result: Result, position: int) -> dict[str, Any]:
    profile = result.candidate.profile
    return {
        "position": position,
        "id": profile.id,
        "rev": profile.rev,
        "provider": profile.provider,
        "provider_verified": profile.provider_verified,
        "score": round(result.score, 4),
        "signals": {signal: round(value, 4) for signal, value in result.signals.items()},
        "bm25": result.candidate.bm25,
        "cosine": result.candidate.cosine,
        "memory": round(result.candidate.shift, 4),
        "suspicious": result.suspicious,
    }
