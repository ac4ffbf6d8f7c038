"""A model server for agents on loopback: chat completions, streamed or not, and responses; it follows a script."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any, TypeAlias

from tests.aws.bedrock_model import Exchange
from tests.aws.bedrock_rules import Refused
from tests.aws.model_server import Act, Answer, ModelServer, Raw, Refuse

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


@dataclass(frozen=True)
class Call:
    """The call of a tool that the model asks for."""

    tool: str
    arguments: Mapping[str, Any]


Script: TypeAlias = Callable[[list[str]], Call | str]
"""What the model says next, given what the tools have returned so far, first to last."""


class ScriptedModel(ModelServer):
    """Follows a script; refuses a call of a tool that the request does not offer."""

    def __init__(self, script: Script) -> None:
        super().__init__(self._follow)
        self._script = script
        self.offered: list[list[str]] = []
        """The names of the tools of every request."""

    def read(self, method: str, path: str, headers: Message, content: bytes) -> tuple[str, str, dict[str, Any]]:
        """One of the two operations."""
        if method != "POST" or path not in (CHAT, RESPONSES):
            raise Refused(f"Unknown request URL: {method} {path}", "not_found")
        body = json.loads(content)
        return path, body["model"], body

    def own_answer(self, exchange: Exchange) -> Answer:
        """Everything follows the script."""
        raise AssertionError

    def complaint_about(self, exchange: Exchange, body: Any) -> str:
        """Replies are made here."""
        return ""

    def refusal(self, act: Refuse) -> Raw:
        """An error as OpenAI's API words it."""
        error = {"message": act.message, "type": "invalid_request_error", "param": None, "code": act.code}
        return Raw(json.dumps({"error": error}).encode(), 400)

    def _follow(self, exchange: Exchange) -> Act:
        body = exchange.body
        tools = [tool.get("function", tool)["name"] for tool in body.get("tools", ())]
        self.offered.append(tools)
        said = self._script(list(_outputs(body)))
        assert isinstance(said, str) or said.tool in tools, f"{said} is not among {tools}"
        if exchange.operation == RESPONSES:
            return Answer(_response(said, exchange))
        return _stream(said, exchange) if body.get("stream") else Answer(_completion(said, exchange))


def _outputs(body: Mapping[str, Any]) -> Iterable[str]:
    for message in body.get("messages", ()):
        if message["role"] == "tool":
            yield _text(message["content"])
    for item in body.get("input", ()):
        if isinstance(item, dict) and item.get("type") == "function_call_output":
            yield _text(item["output"])


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _message(said: Call | str, number: int) -> dict[str, Any]:
    if isinstance(said, str):
        return {"role": "assistant", "content": said}
    function = {"name": said.tool, "arguments": json.dumps(said.arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}],
    }


_USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def _chunk(exchange: Exchange, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    named = {"id": f"chatcmpl-{exchange.number}", "object": kind, "created": 1_767_225_600, "model": exchange.model}
    return {**named, "choices": choices, **more}


def _completion(said: Call | str, exchange: Exchange) -> dict[str, Any]:
    message, end = _message(said, exchange.number), "stop" if isinstance(said, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": end, "logprobs": None}
    return _chunk(exchange, "chat.completion", [choice], usage=_USAGE)


def _stream(said: Call | str, exchange: Exchange) -> Raw:
    """The same as server-sent events: the message in one piece, its end, the usage."""
    kind, end = "chat.completion.chunk", "stop" if isinstance(said, str) else "tool_calls"
    chunks = [
        _chunk(exchange, kind, [{"index": 0, "delta": _message(said, exchange.number), "finish_reason": None}]),
        _chunk(exchange, kind, [{"index": 0, "delta": {}, "finish_reason": end}]),
        _chunk(exchange, kind, [], usage=_USAGE),
    ]
    lines = [*map(json.dumps, chunks), "[DONE]"]
    text = "".join(f"data: {line}\n\n" for line in lines)
    return Raw(text.encode(), headers={"Content-Type": "text/event-stream"})


def _response(said: Call | str, exchange: Exchange) -> dict[str, Any]:
    if isinstance(said, str):
        content = [{"type": "output_text", "text": said, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    else:
        call = {"call_id": f"call_{exchange.number}", "name": said.tool, "arguments": json.dumps(said.arguments)}
        item = {"type": "function_call", "id": f"fc_{exchange.number}", "status": "completed", **call}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120, **details}
    return {
        "id": f"resp_{exchange.number}",
        "object": "response",
        "created_at": 1_767_225_600,
        "model": exchange.model,
        "status": "completed",
        "output": [item],
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
