"""A model server for agents on loopback: chat completions, streamed or not, and responses; it follows a script."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.servers.site import Asked, site

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


@dataclass(frozen=True)
class Call:
    """The call of a tool that the model asks for."""

    tool: str
    arguments: Mapping[str, Any]


Script: TypeAlias = Callable[[list[str]], Call | str]
"""What the model says next, given what the tools have returned so far, first to last."""


@dataclass
class ScriptedModel:
    """Follows a script; a call of a tool that the request does not offer is a mistake."""

    script: Script
    url: str = ""
    offered: list[list[str]] = field(default_factory=list)  # The names of the tools of every request
    mistakes: list[Exception] = field(default_factory=list)  # Answered with 500, and raised at the end

    def answer(self, asked: Asked) -> Any:
        try:
            assert (asked.method, asked.path in (CHAT, RESPONSES)) == ("POST", True), asked.target
            return self._follow(asked.path, json.loads(asked.body))
        except Exception as error:
            self.mistakes.append(error)
            return 500

    def _follow(self, path: str, body: Mapping[str, Any]) -> Any:
        tools = [tool.get("function", tool)["name"] for tool in body.get("tools", ())]
        self.offered.append(tools)
        said = self.script(list(_outputs(body)))
        assert isinstance(said, str) or said.tool in tools, f"{said} is not among {tools}"
        number, model = len(self.offered), body["model"]
        if path == RESPONSES:
            return _response(said, number, model)
        return _stream(said, number, model) if body.get("stream") else _completion(said, number, model)


@contextmanager
def scripted_model(script: Script) -> Iterator[ScriptedModel]:
    model = ScriptedModel(script)
    with site(model.answer) as model.url:
        yield model
    if model.mistakes:
        raise model.mistakes[0]


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


def _chunk(number: int, model: str, kind: str, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    named = {"id": f"chatcmpl-{number}", "object": kind, "created": 1_767_225_600, "model": model}
    return {**named, "choices": choices, **more}


def _completion(said: Call | str, number: int, model: str) -> dict[str, Any]:
    end = "stop" if isinstance(said, str) else "tool_calls"
    choice = {"index": 0, "message": _message(said, number), "finish_reason": end, "logprobs": None}
    return _chunk(number, model, "chat.completion", [choice], usage=_USAGE)


def _stream(said: Call | str, number: int, model: str) -> tuple[int, dict[str, str], bytes]:
    """The same as server-sent events: the message in one piece, its end, the usage."""
    end = "stop" if isinstance(said, str) else "tool_calls"
    chunks = [
        _chunk(number, model, "chat.completion.chunk", choices, **more)
        for choices, more in (
            ([{"index": 0, "delta": _message(said, number), "finish_reason": None}], {}),
            ([{"index": 0, "delta": {}, "finish_reason": end}], {}),
            ([], {"usage": _USAGE}),
        )
    ]
    text = "".join(f"data: {line}\n\n" for line in (*map(json.dumps, chunks), "[DONE]"))
    return 200, {"Content-Type": "text/event-stream"}, text.encode()


def _response(said: Call | str, number: int, model: str) -> dict[str, Any]:
    if isinstance(said, str):
        content = [{"type": "output_text", "text": said, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    else:
        call = {"call_id": f"call_{number}", "name": said.tool, "arguments": json.dumps(said.arguments)}
        item = {"type": "function_call", "id": f"fc_{number}", "status": "completed", **call}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120, **details}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_767_225_600,
        "model": model,
        "status": "completed",
        "output": [item],
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
