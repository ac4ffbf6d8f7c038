"""A multi-turn conversation with tools through Converse; only baselines need one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mats.adapters.bedrock.converse import dialect_of
from mats.adapters.llm import CUT_OFF, MALFORMED, ToolCall
from mats.domain.prompts.usage import Usage
from mats.evaluation.systems.cached_converse import CachedConverse

ANY = "*"
"""`must_call`: some tool."""
FREE = ""
"""`must_call`: none; text is allowed."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EMPTY = "…"
"""Stands for an empty message, which Converse rejects."""


ToolSpec: TypeAlias = Mapping[str, Any]
"""`name`, `description` and `schema` of a tool; the schema's top level has `type`, `properties` and `required` only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """Texts, and the results of the model's calls by their id."""

    texts: Sequence[str] = ()
    results: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTurn:
    """A model's message. `took_ms` and `usage` are those of the original call, also if the reply was `cached`."""

    text: str = ""
    calls: Sequence[ToolCall] = ()
    stop: str = ""
    usage: Usage = field(default_factory=Usage)
    took_ms: float = 0.0
    cached: bool = False

    @property
    def is_broken(self) -> bool:
        """Whether it reached a token limit, or the service reports it as malformed: its calls may be incomplete."""
        return self.stop in CUT_OFF or self.stop.startswith(MALFORMED)


Message: TypeAlias = UserMessage | ModelTurn
"""They alternate, a user's message first; the message after a turn holds the result of every call of that turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModel:
    """A model on Bedrock that converses, one Converse call per turn. Safe to call from several threads."""

    converse: CachedConverse
    model: str

    def turn(
        self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], *, must_call: str, max_tokens: int
    ) -> ModelTurn:
        """The model's next message, at temperature 0.

        `must_call` is the name of a tool, ANY or FREE. Not every model can be forced: it may answer in text or call
        another tool.

        Raises:
            DependencyFailed: the model did not answer; NotPermitted if an operator has to act.
        """
        specs = [
            {"toolSpec": {"name": t["name"], "description": t["description"], "inputSchema": {"json": t["schema"]}}}
            for t in tools
        ]
        request: dict[str, Any] = {
            "modelId": self.model,
            "system": [{"text": system}],
            "messages": [_message(message) for message in messages],
            "inferenceConfig": {"maxTokens": max_tokens, "temperature": 0.0},
            "toolConfig": {"tools": specs},
        }
        dialect = dialect_of(self.model)
        if choice := _tool_choice(must_call, dialect.choice):
            request["toolConfig"]["toolChoice"] = choice
        if dialect.extra:
            request["additionalModelRequestFields"] = dict(dialect.extra)
        call = self.converse.send(request)
        reply, calls = call.reply, _valid_calls(call.reply.calls, len(messages))
        return ModelTurn(
            text=reply.text, calls=calls, stop=reply.stop, usage=reply.usage, took_ms=call.took_ms, cached=call.cached
        )


def _tool_choice(must_call: str, supported: str | None) -> Mapping[str, Any]:
    """The strictest `toolChoice` that a family supports; empty where it supports none."""
    if must_call == FREE or supported is None:
        return {}
    return {"any": {}} if must_call == ANY or supported == "any" else {"tool": {"name": must_call}}


def _message(message: Message) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        results = [
            {"toolResult": {"toolUseId": id, "content": [{"text": text.strip() or _EMPTY}]}}
            for id, text in message.results
        ]
        return {"role": "user", "content": [*results, *({"text": text} for text in message.texts)]}
    texts = [{"text": message.text}] if message.text.strip() else []
    uses = [{"toolUse": {"toolUseId": c.id, "name": c.tool, "input": c.arguments}} for c in message.calls]
    return {"role": "assistant", "content": [*texts, *uses] or [{"text": _EMPTY}]}


def _valid_calls(calls: Sequence[ToolCall], place: int) -> tuple[ToolCall, ...]:
    """The calls in a form that Converse accepts in the next request: valid name, unique id, object as arguments.

    A name that no tool can have becomes `unknown`.
    """
    ids: set[str] = set()
    valid = []
    for number, call in enumerate(calls):
        id = call.id if _NAME.fullmatch(call.id) and call.id not in ids else f"call-{place}-{number}"
        ids.add(id)
        tool = call.tool if _NAME.fullmatch(call.tool) else "unknown"
        valid.append(ToolCall(id, tool, call.arguments if isinstance(call.arguments, dict) else {}))
    return tuple(valid)
