"""An operator's choice of models, which works without a deployment."""

from typing import Literal, NamedTuple, Protocol

SwitchedRole = Literal["rerank", "writer"]
"""The roles whose model can be switched; another encoder would need other vectors."""
OFF = "none"
"""Chosen in place of a model: the role has none."""


class ModelChoice(NamedTuple):
    """The chosen model of each role: its id, `none`, or None for the configured one."""

    rerank: str | None = None
    writer: str | None = None


class ModelSwitch(Protocol):
    """The choice, shared by all functions of a deployment."""

    def load(self) -> ModelChoice:
        """The current choice; values that are no text count as no choice.

        Raises:
            DependencyFailed: the store did not answer.
        """
        ...

    def choose(self, role: SwitchedRole, model: str | None) -> None:
        """Set the choice of one role; None: the configured model again.

        Raises:
            DependencyFailed: the store did not answer; safe to repeat.
        """
        ...
