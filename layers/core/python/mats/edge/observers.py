"""Observers of the system: its log, and its metrics as measures."""

from collections.abc import Sequence
from dataclasses import dataclass

from mats.domain.profile.change_result import ChangeResult
from mats.domain.prompts.usage import Usage
from mats.edge import log, metrics
from mats.ports import (
    Answered,
    BatchDelayed,
    BatchProcessed,
    FeedbackRecorded,
    Metrics,
    ModelsRefused,
    Observation,
    Observer,
    OperationFailed,
    RequestHandled,
)


@dataclass(frozen=True, slots=True)
class LogObserver:
    """Writes log records; without `spell_out`, callers' words by their hash. `requests`: each request has one, too."""

    spell_out: bool = True
    requests: bool = False

    def __call__(self, observation: Observation) -> None:
        match observation:
            case Answered():
                log.log_answer(
                    observation.shortlist,
                    observation.audiences,
                    spell_out=self.spell_out,
                    scope=observation.scope,
                    request_id=observation.request_id,
                )
                log.log_refusals(observation.shortlist.trace.refused)
            case OperationFailed(operation=operation, error=error, request_id=id):
                log.LOGGER.error("%s failed%s: %s", operation, f" request_id={id}" if id else "", error)
            case FeedbackRecorded(feedback=feedback, new=new, request_id=id):
                log.log_feedback(feedback, len(new), spell_out=self.spell_out, request_id=id)
            case BatchProcessed(outcomes=outcomes, usage=usage):
                log.log_batch(outcomes, usage)
            case BatchDelayed(error=error):
                log.LOGGER.warning("enrichment waits: %s", error)
            case ModelsRefused(refused=refused):
                log.log_refusals(refused)
            case RequestHandled() if self.requests:
                log.log_request(observation)
            case _:
                pass


@dataclass(frozen=True, slots=True)
class MeasureObserver:
    """Emits metrics under the names that alarms and dashboards use."""

    emit: Metrics

    def __call__(self, observation: Observation) -> None:
        match observation:
            case Answered(shortlist=shortlist):
                self.emit(metrics.answer_metrics(shortlist))
                metrics.emit_refusals(shortlist.trace.refused, self.emit)
            case OperationFailed():
                self.emit(metrics.FAILED)
            case FeedbackRecorded(new=new):
                self.emit(metrics.feedback_metrics(new))
            case BatchProcessed(outcomes=outcomes, usage=usage):
                self.emit(metrics.batch_metrics(outcomes.values(), usage))
            case BatchDelayed(changes=changes):
                self.emit(metrics.batch_metrics([ChangeResult.DEGRADED] * changes, Usage()))
            case ModelsRefused(refused=refused):
                metrics.emit_refusals(refused, self.emit)
            case _:
                pass


@dataclass(frozen=True, slots=True)
class Observers:
    """Several as one, in this order; `further` may grow and shrink meanwhile."""

    all: Sequence[Observer]
    further: Sequence[Observer] = ()

    def __call__(self, observation: Observation) -> None:
        for observer in (*self.all, *self.further):
            observer(observation)


LOG = LogObserver()
"""The default."""
