"""Delete old versions of a function: a snapshot of each is stored, and paid for, as long as it is there."""

from collections.abc import Sequence
from dataclasses import dataclass

from mats.ports import PublishedVersions


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneVersions:
    """Keep the newest versions, to go back to, and those in use."""

    versions: PublishedVersions
    keep: int = 3

    def __call__(self) -> Sequence[int]:
        """Delete the others, oldest first; returns their numbers.

        Raises:
            DependencyFailed: Lambda did not answer; some may have been deleted.
        """
        numbers = sorted(self.versions.numbers())
        in_use = self.versions.in_use()
        old = [number for number in numbers[: -self.keep] if number not in in_use]
        for number in old:
            self.versions.delete(number)
        return old
