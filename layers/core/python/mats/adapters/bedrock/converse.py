"""Requests and replies of the Converse API; no call is made here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mats.adapters.llm import ModelReply, Question, ToolCall, at_path, to_count
from mats.domain.prompts.usage import Usage
from mats.ports import Labels


def prompt_request(question: Question) -> dict[str, Any]:
    """The Converse request of a question, in the dialect of its model."""
    prompt = question.prompt
    request: dict[str, Any] = {
        "modelId": question.model,
        "system": [{"text": prompt.system}],
        "messages": [{"role": "user", "content": [{"text": text} for text in question.texts]}],
        "inferenceConfig": {"maxTokens": question.max_tokens, "temperature": 0.0},
    }
    if metadata := request_metadata(question.labels):
        request["requestMetadata"] = metadata
    dialect = dialect_of(question.model)
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


def parse_response(answer: object, usage: Usage) -> ModelReply:
    """The reply in a response of any shape; parts of an unexpected shape are skipped."""
    blocks = _blocks(answer)
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    return ModelReply(
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
