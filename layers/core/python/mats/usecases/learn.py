"""Learn: what callers have reported on answers becomes, or leaves, the memory."""

from collections.abc import Collection
from dataclasses import dataclass

from mats.domain.learning.remembered import remember
from mats.ports import MemoryWriter, Outcomes


@dataclass(frozen=True, slots=True)
class Learn:
    """Bring the memory of answers up to what was reported on them; repeating it changes nothing.

    The state is read here, so the order of events and duplicates do not matter.
    """

    outcomes: Outcomes
    writer: MemoryWriter

    def __call__(self, query_ids: Collection[str]) -> None:
        """Raises DependencyFailed: a store did not answer; safe to repeat."""
        at = self.writer.version()
        memories, gone = [], []
        for query_id in dict.fromkeys(query_ids):
            answer = self.outcomes.of(query_id)
            memory = remember(answer) if answer else None
            if memory:
                memories.append(memory)
            else:
                gone.append(query_id)
        if memories:
            self.writer.remember(memories, version=at)
        if gone:
            self.writer.forget(gone, version=at)
