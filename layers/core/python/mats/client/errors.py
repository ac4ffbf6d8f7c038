"""What can go wrong between a client and the API.

MatsError
├── Unreachable      there was no answer: no connection, or not in time; it was tried again
├── NotUnderstood    there was an answer, and it is none of this API's: is the address right?
└── Refused          the API said no; `problem` says why
    ├── WrongRequest   400, 413, 422: `problem.errors` names the fields
    ├── NotAllowed     401, 403: the token, the signature or the policy
    ├── NotFound       404: no such capability, or not for this caller
    └── Busy           429, 502, 503, 504: it was tried again; `retry_after_s` says when to come back, if the API does
"""

from mats.edge.answer import Problem


class MatsError(Exception):
    """Root of the tree; never raised itself."""


class Unreachable(MatsError):
    """There was no answer."""


class NotUnderstood(MatsError):
    """What answered is not this API, or of another age."""


class Refused(MatsError):
    """The API answered with a problem."""

    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        told = (f"{fault.field}: {fault.message}" for fault in problem.errors)
        fields = "".join(f"; {fault}" for fault in told if fault not in problem.detail)
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}{fields}")
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status


class WrongRequest(Refused):
    """The request breaks the contract."""


class NotAllowed(Refused):
    """The caller may not ask this."""


class NotFound(Refused):
    """There is no such capability, or it does not exist for this caller."""


class Busy(Refused):
    """The API cannot answer now."""


_BY_STATUS: dict[int, type[Refused]] = {
    **dict.fromkeys((400, 413, 422), WrongRequest),
    **dict.fromkeys((401, 403), NotAllowed),
    404: NotFound,
    **dict.fromkeys((429, 502, 503, 504), Busy),
}


def refused(problem: Problem, retry_after_s: float | None) -> Refused:
    """The error for a problem, by its status."""
    return _BY_STATUS.get(problem.status, Refused)(problem, retry_after_s)
