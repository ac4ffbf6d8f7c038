"""The exceptions of the client: one tree below `MatsError`."""

from mats.edge.schema import Problem


class MatsError(Exception):
    """Root of the tree; never raised itself."""


class Unreachable(MatsError):
    """No connection, or a timeout, after all retries."""


class NotUnderstood(MatsError):
    """The response is not one of this version of the API: check the address."""


class Refused(MatsError):
    """The API returned an error (RFC 9457); `problem` says why."""

    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        faults = (f"{fault.field}: {fault.message}" for fault in problem.errors)
        fields = "".join(f"; {fault}" for fault in faults if fault not in problem.detail)
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}{fields}")
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        return self.problem.status


class WrongRequest(Refused):
    """The request is invalid; `problem.errors` names the fields."""


class NotAllowed(Refused):
    """The caller is not authenticated or not authorized: the token, the signature or the policy."""


class NotFound(Refused):
    """There is no such capability, or this caller may not see it."""


class Busy(Refused):
    """The API is rate limited or unavailable after all retries; `retry_after_s` is its Retry-After, if any."""


_BY_STATUS: dict[int, type[Refused]] = {
    **dict.fromkeys((400, 413, 422), WrongRequest),
    **dict.fromkeys((401, 403), NotAllowed),
    404: NotFound,
    **dict.fromkeys((429, 502, 503, 504), Busy),
}


def error_of(problem: Problem, retry_after_s: float | None) -> Refused:
    return _BY_STATUS.get(problem.status, Refused)(problem, retry_after_s)
