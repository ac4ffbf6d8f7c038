"""A multi-turn conversation with tools, on Bedrock or through chat completions; only baselines need one."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mats.adapters.bedrock.client import dialect_of
from mats.adapters.llm import CUT_OFF, MALFORMED, ToolCall
from mats.domain.prompts.usage import Usage
from mats.evaluation.systems.models import Models

ANY = "*"  # `must_call`: some tool
FREE = ""  # `must_call`: none; text is allowed
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EMPTY = "…"  # Stands for an empty message, which services reject


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
        """True if it reached a token limit, or the service reports it as malformed: its calls may be incomplete."""
        return self.stop in CUT_OFF or self.stop.startswith(MALFORMED)


Message: TypeAlias = UserMessage | ModelTurn
"""They alternate, a user's message first; the message after a turn holds the result of every call of that turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModel:
    """The settings' reranker in conversation, one call per turn. Safe to call from several threads."""

    models: Models

    def turn(
        self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], *, must_call: str, max_tokens: int
    ) -> ModelTurn:
        """The model's next message, at temperature 0.

        `must_call` is the name of a tool, ANY or FREE. Not every model can be forced: it may answer in text or call
        another tool.

        Raises:
            DependencyFailed: the model did not answer; NotPermitted if an operator has to act.
        """
        models, model = self.models, self.models.names["reranker"]
        request_of = _chat_request if models.settings.llm_url else _converse_request
        request = request_of(model, system, messages, tools, must_call=must_call, limit=max_tokens)
        call = models.send_once({"model": model, "request": request}, lambda: models.server.send(request))
        reply, calls = call.reply, _valid_calls(call.reply.calls, len(messages))
        return ModelTurn(
            text=reply.text, calls=calls, stop=reply.stop, usage=reply.usage, took_ms=call.took_ms, cached=call.cached
        )


def _chat_request(
    model: str, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], *, must_call: str, limit: int
) -> dict[str, Any]:
    """A turn as chat completions takes it."""
    functions = [{"name": t["name"], "description": t["description"], "parameters": t["schema"]} for t in tools]
    return {
        "model": model,
        "messages": [{"role": "system", "content": system}, *(each for m in messages for each in _chat_messages(m))],
        "max_tokens": limit,
        "temperature": 0,
        "tools": [{"type": "function", "function": function} for function in functions],
        "tool_choice": "auto" if must_call == FREE else "required",
    }


def _chat_messages(message: Message) -> Iterator[dict[str, Any]]:
    if isinstance(message, UserMessage):
        for id, text in message.results:
            yield {"role": "tool", "tool_call_id": id, "content": text.strip() or _EMPTY}
        if message.texts:
            yield {"role": "user", "content": "\n\n".join(message.texts)}
        return
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.tool, "arguments": json.dumps(c.arguments)}}
        for c in message.calls
    ]
    text = message.text.strip() or ("" if calls else _EMPTY)
    yield {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}


def _converse_request(
    model: str, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], *, must_call: str, limit: int
) -> dict[str, Any]:
    """A turn as Bedrock's Converse takes it."""
    specs = [
        {"toolSpec": {"name": t["name"], "description": t["description"], "inputSchema": {"json": t["schema"]}}}
        for t in tools
    ]
    request: dict[str, Any] = {
        "modelId": model,
        "system": [{"text": system}],
        "messages": [_message(message) for message in messages],
        "inferenceConfig": {"maxTokens": limit, "temperature": 0.0},
        "toolConfig": {"tools": specs},
    }
    dialect = dialect_of(model)
    if choice := _tool_choice(must_call, dialect.choice):
        request["toolConfig"]["toolChoice"] = choice
    if dialect.extra:
        request["additionalModelRequestFields"] = dict(dialect.extra)
    return request


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
    """The calls in a form that services accept in the next request: valid name, unique id, object as arguments.

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
