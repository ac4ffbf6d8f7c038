"""Observers of the system: log records, wide enough to explain an answer, and metrics for alarms and dashboards."""

import hashlib
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mats import ports
from mats.domain.learning.outcome import Event, Outcome
from mats.domain.profile.profile import ChangeResult, Refusal
from mats.domain.prompts.usage import Usage
from mats.domain.search.candidate import Result
from mats.domain.search.query import ANYWHERE
from mats.domain.search.shortlist import Shortlist
from mats.domain.search.trace import DEGRADABLE_PARTS

LOGGER = logging.getLogger("mats")
_WAITING = (ChangeResult.DEGRADED, ChangeResult.REFUSED)  # What is rejected says nothing of the function
SLOW_MS = 3_500  # The budgets of an answer together: encode 400, retrieve 600, rerank 2,500
UNPRICED = (15, 75)
"""Dollars per million input and output tokens of a model without a price, as high as any: for the alarm on spending."""


@dataclass(frozen=True, slots=True)
class Observers:
    """Several as one, in this order; `further` may grow and shrink meanwhile."""

    all: Sequence[ports.Observer]
    further: Sequence[ports.Observer] = ()

    def __call__(self, observation: ports.Observation) -> None:
        for observer in (*self.all, *self.further):
            observer(observation)


def log_record(fields: Mapping[str, Any], level: int = logging.INFO) -> None:
    """Log a wide record: its `event` is the message, its fields are the `extra` of a `LogRecord`.

    Every formatter writes them as top-level fields, which Logs Insights can filter by.
    """
    LOGGER.log(level, fields["event"], extra=dict(fields))


@dataclass(frozen=True, slots=True)
class LogObserver:
    """Writes log records; without `spell_out`, callers' words by their hash. `requests`: each request has one, too."""

    spell_out: bool = True
    requests: bool = False

    def __call__(self, observation: ports.Observation) -> None:
        match observation:
            case ports.Answered():
                trace = observation.shortlist.trace
                log_record(self._answer(observation), logging.WARNING if trace.faults else logging.INFO)
                if trace.refused:
                    _log_refusals(trace.refused)
            case ports.OperationFailed(operation=operation, error=error, request_id=id):
                LOGGER.error("%s failed%s: %s", operation, f" request_id={id}" if id else "", error)
            case ports.FeedbackRecorded():
                log_record(self._feedback(observation))
            case ports.BatchProcessed(outcomes=outcomes, usage=usage):
                again = sorted(id for id, outcome in outcomes.items() if not outcome.is_final)
                counts = Counter(outcomes.values())
                log_record({"event": "enriched", "outcomes": counts, "again": again, **asdict(usage)})
            case ports.BatchDelayed(error=error):
                LOGGER.warning("enrichment waits: %s", error)
            case ports.ModelsRefused(refused=refused):
                _log_refusals(refused)
            case ports.RequestHandled() if self.requests:
                log_record(_request(observation))

    def _answer(self, answered: ports.Answered) -> dict[str, Any]:
        shortlist, scope = answered.shortlist, answered.scope
        query, trace = shortlist.query, shortlist.trace
        parts = [
            {**self._text("query", part.text), "verdict": part.verdict, "results": part.results}
            for part in shortlist.parts
        ]
        homes, choices = sorted(scope.exact_namespaces), sorted(map(sorted, scope.tag_choices))
        return {
            "event": "discovered",
            "query_id": shortlist.query_id,
            **self._text("query", query.text),
            "filter": {"kinds": query.kinds, "namespaces": query.namespaces, "tags": query.tags},
            "audiences": sorted(answered.audiences),
            "verdict": shortlist.verdict,
            "intent": shortlist.intent,
            "degraded": trace.degraded,
            "without": trace.without,
            "faults": trace.faults,
            **({"notes": trace.notes} if self.spell_out and trace.notes else {}),
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
            **({"request_id": answered.request_id} if answered.request_id else {}),
            **({"scope": {"homes": homes, "tag_choices": choices}} if scope != ANYWHERE else {}),
            # The long ones last: Logs Insights extracts the first 200 fields of a record
            **({"parts": parts} if parts else {}),
            "candidates": [_candidate(result, position) for position, result in enumerate(shortlist.ranked, start=1)],
        }

    def _feedback(self, recorded: ports.FeedbackRecorded) -> dict[str, Any]:
        feedback = recorded.feedback
        return {
            "event": "feedback",
            "query_id": feedback.query_id,
            "outcomes": [{"id": outcome.id, "event": outcome.event} for outcome in feedback.outcomes],
            "recorded": len(recorded.new),
            **(self._text("missing", feedback.missing) if feedback.missing else {}),
            **({"request_id": recorded.request_id} if recorded.request_id else {}),
        }

    def _text(self, name: str, text: str) -> dict[str, str]:
        """A caller's words, or their hash."""
        return {name: text} if self.spell_out else {f"{name}_hash": hashlib.sha256(text.encode()).hexdigest()[:32]}


LOG = LogObserver()  # The default


def _candidate(result: Result, position: int) -> dict[str, Any]:
    candidate, profile = result.candidate, result.candidate.profile
    return {
        "position": position,
        "id": profile.id,
        "rev": profile.rev,
        "provider": profile.provider,
        "provider_verified": profile.provider_verified,
        "score": round(result.score, 4),
        "signals": {signal: round(value, 4) for signal, value in result.signals.items()},
        "bm25": candidate.bm25,
        "cosine": candidate.cosine,
        "memory": round(candidate.shift, 4),
        "exact": candidate.marks.exact.name.lower() if candidate.marks.exact else None,
        "suspicious": result.suspicious,
    }


def _log_refusals(refused: Collection[Refusal]) -> None:
    """Log each model that refuses every request, with its cause and how many capabilities or answers lack it."""
    for refusal, count in Counter(refused).items():
        log_record({"event": "model_refused", **refusal.model_dump(), "count": count}, logging.ERROR)


def _request(request: ports.RequestHandled) -> dict[str, Any]:
    return {
        "event": "request",
        "request_id": request.request_id,
        "method": request.method,
        "route": request.route,
        "status": request.status,
        "ms": round(request.took_ms, 2),
    }


@dataclass(frozen=True, slots=True)
class MeasureObserver:
    """Emits metrics under the names that alarms and dashboards use."""

    emit: ports.Metrics
    version: str = ""
    """The version of the function; each has a metric: 1 for a call that fails, is slow or is degraded, and for a batch
    most of whose changes wait for a model or a store."""

    def __call__(self, observation: ports.Observation) -> None:
        match observation:
            case ports.Answered(shortlist=shortlist):
                self.emit(answer_metrics(shortlist))
                self._emit_refusals(shortlist.trace.refused)
                self._judge_version(bool(shortlist.degraded) or shortlist.trace.took_ms.get("total", 0) > SLOW_MS)
            case ports.OperationFailed():
                self.emit(_counts(Failed=1))
                self._judge_version(True)
            case ports.FeedbackRecorded(new=new):
                self.emit(feedback_metrics(new))
            case ports.BatchProcessed(outcomes=outcomes, usage=usage):
                self.emit(batch_metrics(outcomes.values(), usage))
                waiting = sum(outcome in _WAITING for outcome in outcomes.values())
                self._judge_version(2 * waiting > len(outcomes))
            case ports.BatchDelayed(changes=changes):
                self.emit(batch_metrics([ChangeResult.DEGRADED] * changes, Usage()))
                self._judge_version(True)
            case ports.ModelsRefused(refused=refused):
                self._emit_refusals(refused)

    def _judge_version(self, unhealthy: bool) -> None:
        if self.version.isdecimal():  # not `$LATEST`, to which no rollout leads
            self.emit(_counts(Unhealthy=unhealthy), {"version": self.version})

    def _emit_refusals(self, refused: Collection[Refusal]) -> None:
        """Emit `ModelRefused` of all models, which the alarm watches, and with the dimensions of each."""
        if refused:
            self.emit(_counts(ModelRefused=len(refused)), ports.NO_DIMENSIONS)
        for (model, role), count in sorted(Counter((refusal.model, refusal.role) for refusal in refused).items()):
            self.emit(_counts(ModelRefused=count), {"model": model, "role": role})


def _counts(**values: int) -> dict[str, ports.Measure]:
    return {name: ports.Measure(value, "Count") for name, value in values.items()}


def answer_metrics(shortlist: Shortlist) -> dict[str, ports.Measure]:
    degraded = frozenset(shortlist.degraded)
    return {
        **_counts(Answers=1, Failed=0, Degraded=bool(degraded)),
        **_counts(**{f"Degraded{part.capitalize()}": part in degraded for part in DEGRADABLE_PARTS}),
        f"Verdict{shortlist.verdict.capitalize()}": ports.Measure(1, "Count"),
        **{
            f"{stage.capitalize()}Ms": ports.Measure(ms, "Milliseconds")
            for stage, ms in shortlist.trace.took_ms.items()
        },
        **_usage_metrics(shortlist.trace.usage),
    }


def feedback_metrics(new: Sequence[Outcome]) -> dict[str, ports.Measure]:
    counts = Counter(outcome.event for outcome in new)
    return _counts(Feedback=1, Failed=0, **{f"Outcomes{event.capitalize()}": counts[event] for event in Event})


def batch_metrics(outcomes: Iterable[ChangeResult], usage: Usage) -> dict[str, ports.Measure]:
    counts = Counter(outcomes)
    return {**_counts(**{change_metric(result): counts[result] for result in ChangeResult}), **_usage_metrics(usage)}


def change_metric(result: ChangeResult) -> str:
    """The name of the metric of changes with a result: a degraded change waits for the next delivery."""
    return "Waiting" if result is ChangeResult.DEGRADED else result.capitalize()


def _usage_metrics(usage: Usage) -> dict[str, ports.Measure]:
    tokens, usd = _counts(InputTokens=usage.input_tokens, OutputTokens=usage.output_tokens), usage.usd
    if usd is None:
        usd = (usage.input_tokens * UNPRICED[0] + usage.output_tokens * UNPRICED[1]) / 1e6
    return {**tokens, "Usd": ports.Measure(usd, "None")}
