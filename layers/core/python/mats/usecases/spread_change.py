"""Turn the change of a namespace's row into a change of each registered capability there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from mats.domain.capability.capability import Id
from mats.domain.errors import OutOfTime
from mats.ports import NamespaceChange, Registry
from mats.usecases.deadline import NO_DEADLINE, SAVE_S, Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadChange:
    """Put a change of each capability into the event path, a page at a time. Repeating it sends the same again.

    A capability that is registered meanwhile needs no change: its profile is made with the new row.
    """

    registry: Registry
    send: Callable[[Sequence[Id]], None]
    """Puts a change of each into the event path."""
    send_rest: Callable[[NamespaceChange], None]
    """Puts the change of a namespace into the event path, to go on with it in another run."""
    page: int = 100

    def __call__(self, change: NamespaceChange, deadline: Deadline = NO_DEADLINE) -> int:
        """Send them; the number sent. What the deadline leaves no time for goes on in another run.

        Raises:
            OutOfTime: there was no time to begin.
            DependencyFailed: the registry or the event path did not answer; some may have been sent.
        """
        if not deadline.allows(SAVE_S):
            raise OutOfTime("the time of this run is up")
        sent = 0
        ids = iter(self.registry.ids(namespace=change.namespace, after=change.after))
        while page := list(islice(ids, self.page)):
            self.send(page)
            sent += len(page)
            if len(page) == self.page and not deadline.allows(SAVE_S):
                self.send_rest(replace(change, after=page[-1]))
                break
        return sent
