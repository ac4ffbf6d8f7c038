"""What a call of Converse says and what its reply means; no call is made here."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mats.domain.prompt import Prompt
from mats.domain.usage import Usage
from mats.ports import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered: through tools, or in words, or both, or not at all.

    `usage` and `took_ms` are those of the call when it was made, also if the reply was kept from then (`replayed`).
    """

    stop: str
    calls: tuple[ToolCall, ...]
    text: str
    usage: Usage
    took_ms: float
    replayed: bool = False

    @property
    def tool(self) -> str:
        """The first tool it called; empty if it called none."""
        return self.calls[0].tool if self.calls else ""

    @property
    def arguments(self) -> object:
        """Those of the first call, any JSON."""
        return self.calls[0].arguments if self.calls else None

    @property
    def refused(self) -> bool:
        """Whether the model or a guardrail declined."""
        return self.stop in ("content_filtered", "guardrail_intervened")

    @property
    def malformed(self) -> bool:
        """Whether the service itself says that the model broke the form."""
        return self.stop.startswith("malformed_")

    @property
    def cut_off(self) -> bool:
        """Whether it ran out of tokens."""
        return self.stop in ("max_tokens", "model_context_window_exceeded")


class Converser(ABC):
    """What answers a request of Converse."""

    @abstractmethod
    def ask(self, request: Mapping[str, Any]) -> Reply:
        """The reply to a request as boto3 takes it.

        Raises:
            DependencyFailed: the model did not answer; NotPermitted if an operator has to mend that.
        """

    def converse(self, model: str, prompt: Prompt, *texts: str, max_tokens: int) -> Reply:
        """One Converse call at temperature 0: the texts as one user message, answered through the prompt's tool.

        Raises:
            DependencyFailed: as for `ask`.
        """
        return self.ask(_request(model, prompt, texts, max_tokens))


def _request(model: str, prompt: Prompt, texts: tuple[str, ...], max_tokens: int) -> dict[str, Any]:
    request: dict[str, Any] = {
        "modelId": model,
        "system": [{"text": prompt.system}],
        "messages": [{"role": "user", "content": [{"text": text} for text in texts]}],
        "inferenceConfig": {"maxTokens": max_tokens, "temperature": 0.0},
    }
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


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a family of models is made to answer in a form: by a forced tool, or (None) by being told so in words."""

    choice: str | None
    extra: Mapping[str, Any]


def dialect_of(model: str) -> Dialect:
    """The dialect of a model id, an inference profile's id or an ARN.

    `toolChoice` by Bedrock's API reference: `tool` for Claude and Nova, `any` for Mistral Large, too. An ARN that does
    not name its model is taken for one of the first two.
    """
    if "amazon.nova" in model:
        return Dialect("tool", {"inferenceConfig": {"topK": 1}})
    if "anthropic." in model or model.startswith("arn:"):
        return Dialect("tool", {})
    return Dialect("any", {}) if "mistral-large" in model else Dialect(None, {})


def tokens_of(answer: object) -> tuple[int, int]:
    """Tokens in and out by what an answer says of them."""
    spent = inside(answer, "usage")
    return counted(inside(spent, "inputTokens")), counted(inside(spent, "outputTokens"))


def counted(tokens: object) -> int:
    """A number of tokens; what is none counts as 0."""
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else 0


def reply_of(answer: object, usage: Usage, *, took_ms: float, replayed: bool = False) -> Reply:
    """What is there of an answer, whatever its shape."""
    blocks = _blocks(answer)
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    return Reply(
        stop=str(inside(answer, "stopReason") or ""),
        calls=tuple(
            ToolCall(str(inside(use, "toolUseId") or ""), str(inside(use, "name") or ""), inside(use, "input"))
            for use in uses
        ),
        text="\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str)),
        usage=usage,
        took_ms=took_ms,
        replayed=replayed,
    )


def keepable(answer: object) -> dict[str, Any]:
    """The part of an answer that `reply_of` and `tokens_of` read; it is JSON."""
    return {
        "output": {"message": {"content": [b for b in _blocks(answer) if b.keys() <= {"text", "toolUse"}]}},
        "stopReason": inside(answer, "stopReason"),
        "usage": dict(zip(("inputTokens", "outputTokens"), tokens_of(answer), strict=True)),
    }


def _blocks(answer: object) -> list[dict[str, Any]]:
    content = inside(answer, "output", "message", "content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def inside(value: object, *path: str) -> Any:
    """What a value holds under nested keys; None where there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
