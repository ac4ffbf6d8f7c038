"""The exceptions of the client.

MatsError
├── Unreachable      no connection, or a timeout, after all retries
├── NotUnderstood    the response is not one of this API: check the address
└── Refused          the API returned an error; `problem` says why
    ├── WrongRequest   400, 413, 422: `problem.errors` names the fields
    ├── NotAllowed     401, 403: the token, the signature or the policy
    ├── NotFound       404: no such capability, or not for this caller
    └── Busy           429, 502, 503, 504, after all retries; `retry_after_s` is the Retry-After of the API, if any
"""

from mats.edge.answer import Problem


class MatsError(Exception):
    """Root of the tree; never raised itself."""


class Unreachable(MatsError):
    """No connection, or a timeout."""


class NotUnderstood(MatsError):
    """The response is not one of this version of the API."""


class Refused(MatsError):
    """The API returned an error (RFC 9457 problem)."""

    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        faults = (f"{fault.field}: {fault.message}" for fault in problem.errors)
        fields = "".join(f"; {fault}" for fault in faults if fault not in problem.detail)
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}{fields}")
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status


class WrongRequest(Refused):
    """The request is invalid."""


class NotAllowed(Refused):
    """The caller is not authenticated or not authorized."""


class NotFound(Refused):
    """There is no such capability, or this caller may not see it."""


class Busy(Refused):
    """The API is rate limited or temporarily unavailable."""


_BY_STATUS: dict[int, type[Refused]] = {
    **dict.fromkeys((400, 413, 422), WrongRequest),
    **dict.fromkeys((401, 403), NotAllowed),
    404: NotFound,
    **dict.fromkeys((429, 502, 503, 504), Busy),
}


def error_of(problem: Problem, retry_after_s: float | None) -> Refused:
    """The error for a problem, by its status."""
    return _BY_STATUS.get(problem.status, Refused)(problem, retry_after_s)
