"""Every error of ours, sorted by whose mistake it is.

CapabilityError
├── Invalid                  what somebody wrote cannot be used; carries every fault at once
│   ├── RegistrationInvalid  the owner's mistake
│   │   └── KindConflict     the id belongs to a capability of another kind
│   └── RequestInvalid       the caller's mistake
├── PreconditionFailed       the caller's mistake: what it read has changed since
├── CapabilityNotFound       the caller's mistake: no such capability, or not for this caller
├── ReplyUnusable            a model's mistake; the pipeline carries on without that reply
└── DependencyFailed         somebody else's mistake; retry
    ├── OutOfTime            the dependency did not answer within its budget
    ├── NotPermitted         the operator's to mend: credentials, policies, regions; a retry alone will not help
    └── StorageUnusable      the operator's to mend: the message says how; a retry alone will not help
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
    """What somebody wrote cannot be used."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


class RegistrationInvalid(Invalid):
    """An owner's registration breaks the contract."""


class KindConflict(RegistrationInvalid):
    """The id belongs to a capability of another kind, and the kind under an id cannot change."""

    def __init__(self, id: str) -> None:
        message = f"cannot change: {id} exists as another kind; remove it first, or choose another name"
        super().__init__([Fault("kind", message)])


class RequestInvalid(Invalid):
    """A caller's request breaks the contract."""


class PreconditionFailed(CapabilityError):
    """A conditional write found another version than the caller expected."""

    def __init__(self, id: str) -> None:
        super().__init__(f"{id} was changed by someone else; reload it and try again")


class CapabilityNotFound(CapabilityError):
    """There is no such capability, or it does not exist for this caller."""

    def __init__(self, id: str) -> None:
        super().__init__(f"no capability {id!r}")
        self.id = id


class ReplyUnusable(CapabilityError):
    """A model answered something that cannot be used."""


class DependencyFailed(CapabilityError):
    """Something we depend on did not do its part; safe to retry."""


class OutOfTime(DependencyFailed):
    """A stage did not answer within its budget."""


class NotPermitted(DependencyFailed):
    """The dependency refuses us until an operator mends credentials, policies or settings."""


class StorageUnusable(DependencyFailed):
    """The storage cannot be used until an operator mends it: corrupt, read-only, full."""
