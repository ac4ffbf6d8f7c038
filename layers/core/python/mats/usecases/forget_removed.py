"""Forget what was reported on capabilities that are removed."""

from collections.abc import Collection
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.ports import Outcomes, Registry


@dataclass(frozen=True, slots=True)
class ForgetRemoved:
    """Delete outcomes and tallies of those that are not registered now; late and repeated removals do no harm."""

    registry: Registry
    outcomes: Outcomes

    def __call__(self, ids: Collection[Id]) -> None:
        """Raises DependencyFailed: a store did not answer; safe to repeat."""
        there = self.registry.get(ids)
        for id in dict.fromkeys(ids):
            if id not in there:
                self.outcomes.forget(id)
