"""A conversation with tools, by Converse."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mats.adapters.bedrock.conversing import Converser, dialect_of
from mats.ports import ANY, FREE, Message, Told, Tool, ToolCall, Turn

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOTHING = "…"
"""Stands for a turn without a word: Converse takes no empty message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BedrockChat:
    """One Converse call a turn."""

    runtime: Converser
    name: str

    def turn(
        self, system: str, messages: Sequence[Message], tools: Sequence[Tool], *, must_call: str, max_tokens: int
    ) -> Turn:
        """What the model says next; `must_call` holds as far as its family can be forced.

        Raises:
            DependencyFailed: the model did not answer; NotPermitted if an operator has to mend that.
        """
        request = _request(self.name, system, messages, tools, must_call=must_call, max_tokens=max_tokens)
        reply = self.runtime.ask(request)
        return Turn(
            text=reply.text,
            calls=_identified(reply.calls, len(messages)),
            stop=reply.stop,
            usage=reply.usage,
            took_ms=reply.took_ms,
            replayed=reply.replayed,
        )


def _request(
    model: str, system: str, messages: Sequence[Message], tools: Sequence[Tool], *, must_call: str, max_tokens: int
) -> dict[str, Any]:
    specs = [
        {"toolSpec": {"name": t.name, "description": t.description, "inputSchema": {"json": dict(t.schema)}}}
        for t in tools
    ]
    request: dict[str, Any] = {
        "modelId": model,
        "system": [{"text": system}],
        "messages": [_message(message) for message in messages],
        "inferenceConfig": {"maxTokens": max_tokens, "temperature": 0.0},
        "toolConfig": {"tools": specs},
    }
    dialect = dialect_of(model)
    if choice := _choice(must_call, dialect.choice):
        request["toolConfig"]["toolChoice"] = choice
    if dialect.extra:
        request["additionalModelRequestFields"] = dict(dialect.extra)
    return request


def _choice(must_call: str, able: str | None) -> Mapping[str, Any]:
    """The nearest to what is wanted that a family is able to do; nothing where it can only be asked."""
    if must_call == FREE or able is None:
        return {}
    return {"any": {}} if must_call == ANY or able == "any" else {"tool": {"name": must_call}}


def _message(message: Message) -> dict[str, Any]:
    if isinstance(message, Told):
        results = [
            {"toolResult": {"toolUseId": id, "content": [{"text": text.strip() or _NOTHING}]}}
            for id, text in message.results
        ]
        return {"role": "user", "content": [*results, *({"text": text} for text in message.texts)]}
    said = [{"text": message.text}] if message.text.strip() else []
    uses = [{"toolUse": {"toolUseId": c.id, "name": c.tool, "input": c.arguments}} for c in message.calls]
    return {"role": "assistant", "content": [*said, *uses] or [{"text": _NOTHING}]}


def _identified(calls: Sequence[ToolCall], place: int) -> tuple[ToolCall, ...]:
    """Calls that Converse takes back as part of what was said: each with a name, an id of its own and an object.

    A name that no tool can have is none of ours, so it is as well called `unknown`.
    """
    known: set[str] = set()
    kept = []
    for number, call in enumerate(calls):
        id = call.id if _NAME.fullmatch(call.id) and call.id not in known else f"call-{place}-{number}"
        known.add(id)
        tool = call.tool if _NAME.fullmatch(call.tool) else "unknown"
        kept.append(ToolCall(id, tool, call.arguments if isinstance(call.arguments, dict) else {}))
    return tuple(kept)
