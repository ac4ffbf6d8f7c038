"""The exception tree of mats, by who has to correct the fault.

CapabilityError
├── Invalid                  invalid input; carries every fault
│   ├── RegistrationInvalid  by the owner
│   │   └── KindConflict     the id belongs to a capability of another kind
│   ├── RequestInvalid       by the caller
│   └── NotPossible          by the caller: a valid request, but what is stored does not allow it
├── PreconditionFailed       by the caller: the version it read has changed
├── CapabilityNotFound       by the caller: no such capability, or not visible to this caller
│   └── InstructionsNotFound by the caller: the capability has no instructions
├── ReceiptNotFound          by the caller: no such answer, not this caller's, or too old
├── RegistryNotFound         by the operator: there is no local registry where one is looked for
├── ReplyUnusable            by a model; the pipeline continues without that reply
└── DependencyFailed         by a dependency; retry
    ├── OutOfTime            the dependency did not answer within its budget
    ├── NotInstalled         by the operator: a package; a retry alone will not help
    ├── NotPermitted         by the operator: credentials, policies, regions; a retry alone will not help
    │   └── ModelRefused     a model refuses every request of this configuration
    └── StorageUnusable      by the operator, as the message says; a retry alone will not help
"""

from collections.abc import Sequence
from typing import NamedTuple


class Fault(NamedTuple):
    """One thing wrong with one attribute; the attribute is a dotted path such as `tags.2`."""

    attribute: str
    message: str

    def __str__(self) -> str:
        return f"{self.attribute}: {self.message}" if self.attribute else self.message


class CapabilityError(Exception):
    """Root of the tree; never raised itself."""


class Invalid(CapabilityError):
    """Invalid input."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


class RegistrationInvalid(Invalid):
    """An owner's registration is invalid."""


class KindConflict(RegistrationInvalid):
    def __init__(self, id: str) -> None:
        message = f"cannot change: {id} exists as another kind; remove it first, or choose another name"
        super().__init__([Fault("kind", message)])


class RequestInvalid(Invalid):
    """A caller's request is invalid."""


class NotPossible(Invalid):
    """A valid request that what is stored does not allow."""


class PreconditionFailed(CapabilityError):
    def __init__(self, id: str) -> None:
        super().__init__(f"{id} was changed by someone else; reload it and try again")


LIST_IDS = "list the ids with `mats list` or `GET /capabilities`"


class CapabilityNotFound(CapabilityError):
    def __init__(self, id: str, nearest: Sequence[str] = ()) -> None:
        """`nearest` are ids that the caller may see, best first."""
        names = " or ".join(f"`{other}`" for other in nearest)
        remedy = f"did you mean {names}?" if nearest else LIST_IDS
        super().__init__(f"no capability {id!r}: {remedy}")
        self.id = id


class InstructionsNotFound(CapabilityNotFound):
    def __init__(self, id: str) -> None:
        Exception.__init__(self, f"{id} has no instructions: only skills have, if their owner registered them")
        self.id = id


class ReceiptNotFound(CapabilityError):
    def __init__(self, query_id: str, days: int) -> None:
        super().__init__(
            f"no answer {query_id!r} to report on: use the `query_id` of an answer that you got in the last {days} days"
        )


class RegistryNotFound(CapabilityError):
    def __init__(self, home: object) -> None:
        super().__init__(f"no registry at {home}: `mats init`, `mats import` or `mats serve --sample` makes one")


class ReplyUnusable(CapabilityError):
    """A model's reply cannot be used."""


class DependencyFailed(CapabilityError):
    """A dependency failed; safe to retry."""


class Overloaded(DependencyFailed):
    """Too many requests wait already; safe to retry in so many seconds."""

    def __init__(self, waiting: int, retry_after_s: int = 1) -> None:
        super().__init__(f"{waiting} requests wait already; try again in {retry_after_s} s, or send fewer at once")
        self.retry_after_s = retry_after_s


class OutOfTime(DependencyFailed):
    """A stage did not answer within its budget."""


class NotInstalled(DependencyFailed):
    """A package is missing until an operator installs it."""


def command_to_install(extra: str) -> str:
    """The command that installs an extra. It names the clone: the name `mats` on PyPI is another project's."""
    return f"pip install '.[{extra}]' in a clone of mats"


class NotPermitted(DependencyFailed):
    """The dependency denies access until an operator corrects credentials, policies or settings."""


class ModelRefused(NotPermitted):
    """A model refuses every request of this configuration: it is missing, denied, or cannot be called in this way."""

    def __init__(self, message: str, *, model: str, cause: str) -> None:
        """`cause` is the code and the text of the service's error."""
        super().__init__(message)
        self.model, self.cause = model, cause


class StorageUnusable(DependencyFailed):
    """The storage is unusable until an operator repairs it: corrupt, read-only, full."""
