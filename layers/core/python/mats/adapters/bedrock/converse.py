"""Requests and replies of the Converse API; no call is made here."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mats.domain.prompt import Prompt
from mats.domain.usage import Usage
from mats.ports import NO_LABELS, Labels

CUT_OFF = ("max_tokens", "model_context_window_exceeded")
"""Stop reasons of a reply that reached a token limit."""
MALFORMED = "malformed_"
"""How the stop reasons begin by which the service itself reports malformed model output."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call as the model made it: the tool need not exist, and `arguments` may be any JSON."""

    id: str
    tool: str
    arguments: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ConverseReply:
    """A model's reply: tool calls, text, both or neither."""

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
        return self.stop in ("content_filtered", "guardrail_intervened")

    @property
    def is_malformed(self) -> bool:
        """Whether the service itself reports malformed model output."""
        return self.stop.startswith(MALFORMED)

    @property
    def is_cut_off(self) -> bool:
        """Whether the model reached a token limit."""
        return self.stop in CUT_OFF


Converse: TypeAlias = Callable[[Mapping[str, Any]], ConverseReply]
"""Sends a Converse request, as boto3 takes it, and parses the response.

Raises DependencyFailed if the model did not answer, NotPermitted if an operator has to act.
"""


def prompt_request(
    model: str, prompt: Prompt, *texts: str, max_tokens: int, labels: Labels = NO_LABELS
) -> dict[str, Any]:
    """The texts as one user message at temperature 0, to be answered through the prompt's tool."""
    request: dict[str, Any] = {
        "modelId": model,
        "system": [{"text": prompt.system}],
        "messages": [{"role": "user", "content": [{"text": text} for text in texts]}],
        "inferenceConfig": {"maxTokens": max_tokens, "temperature": 0.0},
    }
    if metadata := request_metadata(labels):
        request["requestMetadata"] = metadata
    dialect = dialect_of(model)
    if dialect.choice is None:
        request["system"].append({"text": prompt.parts["plain"]})
        return request
    tool = prompt.tool
    spec = {"name": tool["name"], "description": tool["description"], "inputSchema": {"json": tool["schema"]}}
    choice = {"tool": {"name": tool["name"]}} if dialect.choice == "tool" else {dialect.choice: {}}
    request["toolConfig"] = {"tools": [{"toolSpec": spec}], "toolChoice": choice}
    if dialect.extra:
        request["additionalModelRequestFields"] = dict(dialect.extra)
    return request


def request_metadata(labels: Labels) -> dict[str, str]:
    """Labels as Bedrock's invocation log takes them: at most 16, clipped, `_` for a character it does not allow."""
    named = [(name, _NOT_ALLOWED.sub("_", value)[:_MAX_LABEL]) for name, value in labels.items() if value]
    return dict(named[:_MAX_LABELS])


_MAX_LABELS, _MAX_LABEL = 16, 256
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9 :_@$#=/+,.-]")
"""By the API reference of Converse, `requestMetadata`."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The way to make a family of models return JSON: a forced tool call (`choice`), or instructions in text (None)."""

    choice: str | None
    extra: Mapping[str, Any]


def dialect_of(model: str) -> Dialect:
    """The dialect of a model id, an inference profile's id or an ARN.

    `toolChoice` by Bedrock's API reference: `tool` for Claude and Nova, `any` also for Mistral Large. An ARN without a
    model name is assumed to be Claude or Nova.
    """
    if "amazon.nova" in model:
        return Dialect("tool", {"inferenceConfig": {"topK": 1}})
    if "anthropic." in model or model.startswith("arn:"):
        return Dialect("tool", {})
    return Dialect("any", {}) if "mistral-large" in model else Dialect(None, {})


def token_counts(answer: object) -> tuple[int, int]:
    """Input and output tokens of a response's `usage`."""
    usage = at_path(answer, "usage")
    return to_count(at_path(usage, "inputTokens")), to_count(at_path(usage, "outputTokens"))


def to_count(tokens: object) -> int:
    """A number of tokens; 0 for anything but a positive integer."""
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else 0


def parse_response(answer: object, usage: Usage) -> ConverseReply:
    """The reply in a response of any shape; parts of an unexpected shape are skipped."""
    blocks = _blocks(answer)
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    return ConverseReply(
        stop=str(at_path(answer, "stopReason") or ""),
        calls=tuple(
            ToolCall(str(at_path(use, "toolUseId") or ""), str(at_path(use, "name") or ""), at_path(use, "input"))
            for use in uses
        ),
        text="\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str)),
        usage=usage,
    )


def _blocks(answer: object) -> list[dict[str, Any]]:
    content = at_path(answer, "output", "message", "content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def at_path(value: object, *path: str) -> Any:
    """The value under nested keys; None if a key is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
