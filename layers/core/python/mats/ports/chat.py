"""A conversation with a model that may call tools. Only the evaluation has any: the pipeline asks each model once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from mats.domain.usage import Usage

ANY = "*"
"""Some tool must be called, whichever."""
FREE = ""
"""Words will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a model may call; the top level of `schema` holds `type`, `properties` and `required` only."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call, as the model made it: the tool need not exist, and `arguments` may be any JSON."""

    id: str
    tool: str
    arguments: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a model is told: texts, and what came of its calls by their id."""

    texts: Sequence[str] = ()
    results: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a model said.

    `took_ms` and `usage` are those of the call when it was made, also if this is a reply that was kept from then
    (`replayed`), which cost nothing now.
    """

    text: str = ""
    calls: Sequence[ToolCall] = ()
    stop: str = ""
    usage: Usage = field(default_factory=Usage)
    took_ms: float = 0.0
    replayed: bool = False


Message: TypeAlias = Told | Turn
"""They alternate, and what a model is told comes first; every call of a turn has its result in what follows."""


class Chat(Protocol):
    """A model that converses."""

    @property
    def name(self) -> str:
        """The model's id."""
        ...

    def turn(
        self, system: str, messages: Sequence[Message], tools: Sequence[Tool], *, must_call: str, max_tokens: int
    ) -> Turn:
        """What the model says next, at temperature 0.

        Safe to call from several threads.

        Args:
            system: What it is there for.
            messages: What was said so far.
            tools: What it may call.
            must_call: One of these tools, ANY or FREE. Not every model can be made to: it may answer in words all
                the same, or call another tool.
            max_tokens: After which it is cut off.

        Raises:
            DependencyFailed: the model did not answer.
        """
        ...
