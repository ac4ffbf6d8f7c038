"""Who sends a request."""

from dataclasses import dataclass

from mats.settings import Settings

LOCAL = "local"
"""The name of the user of this machine, in receipts and tallies."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller as its credentials identify it; parsed once, at the edge.

    `arn` is the role or user that signed the request; operators map it to audiences. Empty if nobody signed.
    `subject` is that of its token; empty without one.
    `request_id` is the one of the request, for logs; empty where nothing gives it one.
    """

    audiences: frozenset[str] = frozenset()
    arn: str = ""
    sees_internal_errors: bool = False
    request_id: str = ""
    subject: str = ""

    @property
    def name(self) -> str:
        """Identifies the caller in receipts and tallies; `local` on this machine."""
        return self.arn or self.subject or LOCAL


def local_caller(settings: Settings) -> Caller:
    """The user of this machine, who is its operator, too."""
    return Caller(frozenset(settings.audiences), sees_internal_errors=True)
