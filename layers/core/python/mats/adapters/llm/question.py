"""One question to a language model and its reply, whatever service runs the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mats.domain.prompts.prompt import Prompt
from mats.domain.prompts.usage import Usage
from mats.ports import Labels

MAX_TOKENS, CONTEXT_FULL = "max_tokens", "model_context_window_exceeded"
CUT_OFF = (MAX_TOKENS, CONTEXT_FULL)
"""Stop reasons of a reply that reached a token limit."""
FILTERED = "content_filtered"
MALFORMED = "malformed_"
"""How the stop reasons begin by which the service itself reports malformed model output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Texts of one user message, to be answered at temperature 0 through the prompt's tool, or as JSON of its schema.

    `lengths` are the exact numbers of items of array properties, for services that enforce a schema. `labels` go into
    the service's log, if it has one.
    """

    model: str
    prompt: Prompt
    texts: tuple[str, ...]
    max_tokens: int
    labels: Labels
    lengths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call as the model made it: the tool need not exist, and `arguments` may be any JSON."""

    id: str
    tool: str
    arguments: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A model's reply: tool calls, text, both or neither. Stop reasons are named as in Bedrock's Converse API."""

    stop: str
    calls: tuple[ToolCall, ...]
    text: str
    usage: Usage

    @property
    def tool(self) -> str:
        """The tool of the first call; empty without a call."""
        return self.calls[0].tool if self.calls else ""

    @property
    def arguments(self) -> object:
        """The arguments of the first call, any JSON."""
        return self.calls[0].arguments if self.calls else None

    @property
    def is_refusal(self) -> bool:
        """Whether the model or a guardrail declined."""
        return self.stop in (FILTERED, "guardrail_intervened")

    @property
    def is_malformed(self) -> bool:
        """Whether the service itself reports malformed model output."""
        return self.stop.startswith(MALFORMED)

    @property
    def is_cut_off(self) -> bool:
        """Whether the model reached a token limit."""
        return self.stop in CUT_OFF


AskModel: TypeAlias = Callable[[Question], ModelReply]
"""Asks a model.

Raises DependencyFailed if the model did not answer, NotPermitted if an operator has to act, ModelRefused if the model
refuses every request.
"""


def at_path(value: object, *path: str) -> Any:
    """The value under nested keys; None if a key is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
