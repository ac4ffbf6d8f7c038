"""`POST /feedback`: its request, its answer and its service."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from mats.domain.capability.capability import Id
from mats.domain.capability.faults import RequestModel
from mats.domain.errors import CapabilityError, DependencyFailed, Fault, NotPossible
from mats.domain.learning.outcome import Event, Feedback, Outcome
from mats.edge.http import Caller, Request, Response, error_response, json_response
from mats.edge.schema import ResponseModel
from mats.ports import FeedbackRecorded, Observer, OperationFailed

_MOST_OUTCOMES, _MAX_MISSING, _MAX_ID = 50, 2_000, 300


class ReportedOutcome(RequestModel):
    """An event of one result."""

    id: Annotated[str, Field(min_length=1, max_length=_MAX_ID)] = Field(description="Of a result of the answer.")
    event: Event = Field(
        description="`selected`: chosen. `succeeded`: it did what was asked for. `failed`: it was called and failed. "
        "`wrong`: it does something else."
    )


class FeedbackRequest(RequestModel):
    """A caller's report about an answer: the body of `POST /feedback`."""

    hints: ClassVar = {"id": "is not a known attribute; ids belong in `outcomes`, that of the answer is `query_id`"}
    query_id: Annotated[str, Field(min_length=1, max_length=100)] = Field(description="`query_id` of the answer.")
    outcomes: Annotated[tuple[ReportedOutcome, ...], Field(max_length=_MOST_OUTCOMES)] = Field(
        default=(), description="What happened to its results."
    )
    missing: Annotated[str, Field(max_length=_MAX_MISSING)] | None = Field(
        default=None, description="What was needed and not found, in plain words."
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.outcomes and not (self.missing or "").strip():
            raise ValueError("the feedback is empty: give `outcomes`, `missing`, or both")
        return self

    def feedback(self, caller: str) -> Feedback:
        return Feedback(
            query_id=self.query_id,
            caller=caller,
            outcomes=tuple(Outcome(Id(each.id), each.event) for each in self.outcomes),
            missing=(self.missing or "").strip(),
        )


class FeedbackAnswer(ResponseModel):
    """The answer of `POST /feedback`."""

    query_id: str
    recorded: int = Field(description="Outcomes that were new; the others had been reported before.")
    missing: bool = Field(description="What was missing is stored.")


@dataclass(frozen=True, slots=True)
class FeedbackService:
    """Feedback as callers may give it, logged and measured."""

    record: Callable[[Feedback], Sequence[Outcome]]
    observe: Observer

    def __call__(self, caller: Caller, wish: FeedbackRequest) -> FeedbackAnswer:
        """Record feedback. Raises as `RecordFeedback`."""
        feedback = wish.feedback(caller.name)
        try:
            new = self.record(feedback)
        except DependencyFailed as error:
            self.observe(OperationFailed(operation="feedback", error=error, request_id=caller.request_id))
            raise
        self.observe(FeedbackRecorded(feedback=feedback, new=new, request_id=caller.request_id))
        return FeedbackAnswer(query_id=wish.query_id, recorded=len(new), missing=bool(feedback.missing))


def require(service: FeedbackService | None) -> FeedbackService:
    """The service. Raises NotPossible: there is none."""
    if service is None:
        raise NotPossible(
            [Fault("", "nothing can be reported here: MATS_RECEIPT_DAYS is 0, or the token lacks the scope report")]
        )
    return service


def respond_alone(service: FeedbackService, request: Request) -> Response:
    """`POST /feedback` of the function that answers nothing else."""
    try:
        return respond(service, request)
    except CapabilityError as error:
        return error_response(error, internal_details=request.caller.sees_internal_errors)


def respond(service: FeedbackService, request: Request) -> Response:
    """`POST /feedback`. Raises as the service, and RequestInvalid."""
    return json_response(service(request.caller, FeedbackRequest.parse(request.json())), 202)
