"""A server of chat completions on loopback, as strict as the strictest: it refuses a parameter that it does not know.

`takes` are the ways to JSON that this server has; a test may leave some out, as many servers do. It thinks as the
stand-in for Bedrock does.
"""

import json
from collections.abc import Collection, Mapping
from email.message import Message
from typing import Any

from tests.aws.bedrock_model import Exchange, converse_reply, thought
from tests.aws.bedrock_rules import Refused
from tests.aws.model_server import Answer, ModelServer, Play, Raw, Refuse

WAYS = ("tool", "schema", "json", "text")
_KNOWN = {"model", "messages", "max_tokens", "temperature", "tools", "tool_choice", "response_format"}
_STATUS = {"invalid_api_key": 401, "model_not_found": 404, "not_found": 404, "internal_error": 500}
_STOPS = {"max_tokens": "length", "model_context_window_exceeded": "length", "content_filtered": "content_filter"}
_TOOL = {"name", "description", "parameters"}
_ROLES = ("system", "user")
_SCHEMA = {
    "type", "description", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
}  # fmt: skip
"""Keywords that every server makes a grammar of."""
MODEL = "tiny-instruct"


class ChatServer(ModelServer):
    """Knows one model under `/v1`; with a `key`, it asks for it."""

    fault = "internal_error"

    def __init__(
        self, play: Play | None = None, *, key: str = "", takes: Collection[str] = WAYS, delay_s: float = 0.0
    ) -> None:
        super().__init__(play, delay_s=delay_s)
        self.key, self.takes = key, takes
        self.paths: list[str] = []
        """Every path that was asked for, with its method."""

    @property
    def address(self) -> str:
        """What MATS_LLM_URL must be."""
        return f"{self.url}/v1"

    def client_environment(self) -> dict[str, str]:
        return {"MATS_LLM_URL": self.address, "MATS_LLM_MODEL": MODEL, "MATS_LLM_KEY": self.key}

    def read(self, method: str, path: str, headers: Message, content: bytes) -> tuple[str, str, dict[str, Any]]:
        self.paths.append(f"{method} {path}")
        if self.key and headers.get("Authorization") != f"Bearer {self.key}":
            raise Refused(f"Incorrect API key provided: {headers.get('Authorization')}", "invalid_api_key")
        if (method, path) != ("POST", "/v1/chat/completions"):
            raise Refused(f"Unknown request URL: {method} {path}", "not_found")
        body = json.loads(content)
        if unknown := sorted(body.keys() - _KNOWN):
            raise Refused(f"Unrecognized request argument supplied: {', '.join(unknown)}")
        if body.get("model") != MODEL:
            raise Refused(f"The model `{body.get('model')}` does not exist", "model_not_found")
        for breach in (
            _breach_of_messages(body),
            _breach_of_numbers(body),
            _breach_of_schema(body),
            self._breach_of_output(body),
        ):
            if breach:
                raise Refused(breach)
        return "chat.completions", body["model"], body

    def _breach_of_output(self, body: Mapping[str, Any]) -> str:
        way = way_of(body)
        if way not in self.takes and "tool" in way:
            return "this server does not support tools"
        if way not in self.takes:
            return f"response_format of type {way!r} is not supported"
        if way == "tool":
            [tool] = body["tools"]
            wrong = tool.keys() ^ {"type", "function"} or tool["function"].keys() ^ _TOOL
            return "a tool has other keys" if wrong or body["tool_choice"] != "required" else ""
        if way == "schema":
            named = body["response_format"]["json_schema"]
            closed = named["schema"].get("additionalProperties") is False
            return "" if named.keys() == {"name", "strict", "schema"} and closed else "json_schema is not strict"
        return (
            "" if way == "text" or body["response_format"] == {"type": "json_object"} else "response_format is unknown"
        )

    def own_answer(self, exchange: Exchange) -> Answer:
        """What Bedrock's stand-in would think of the same texts."""
        return Answer(chat_reply(thought(_as_converse(exchange)), way_of(exchange.body)), self._delay_s)

    def complaint_about(self, exchange: Exchange, body: Any) -> str:
        try:
            [choice] = body["choices"]
            known = choice["finish_reason"] in ("stop", "length", "tool_calls", "content_filter")
            texts = [call["function"]["arguments"] for call in choice["message"].get("tool_calls", ())]
        except (KeyError, TypeError, ValueError) as error:
            return f"no reply: {error!r}"
        return "" if known and all(isinstance(text, str) for text in texts) else "no reply of this service"

    def refusal(self, act: Refuse) -> Raw:
        body = {"error": {"message": act.message, "type": "invalid_request_error", "param": None, "code": act.code}}
        return Raw(json.dumps(body).encode(), act.status or _STATUS.get(act.code, 400))


def _breach_of_schema(body: Mapping[str, Any]) -> str:
    schemas = [tool["function"]["parameters"] for tool in body.get("tools", ())]
    schemas += [format["schema"] for format in [body.get("response_format", {}).get("json_schema")] if format]
    unknown = {keyword for schema in schemas for keyword in _keywords(schema)} - _SCHEMA
    return f"no grammar for {sorted(unknown)}" if unknown else ""


def _keywords(schema: Mapping[str, Any]) -> set[str]:
    below = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return {*schema, *(keyword for each in below for keyword in _keywords(each))}


def way_of(body: Mapping[str, Any]) -> str:
    """How a request asks for JSON."""
    if "tools" in body:
        return "tool"
    kind = body.get("response_format", {}).get("type", "text")
    return {"json_schema": "schema", "json_object": "json"}.get(kind, kind)


def chat_reply(reply: Mapping[str, Any], way: str = "tool") -> dict[str, Any]:
    """A reply of Converse as one of chat completions: of a tool call, or of the same JSON as text."""
    blocks = reply["output"]["message"]["content"]
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    texts = [block["text"] for block in blocks if "text" in block]
    written = [use["input"] if isinstance(use["input"], str) else json.dumps(use["input"]) for use in uses]
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join(texts) or None}
    if uses and way == "tool":
        message["tool_calls"] = [
            {"id": use["toolUseId"], "type": "function", "function": {"name": use["name"], "arguments": text}}
            for use, text in zip(uses, written, strict=True)
        ]
    elif uses:
        message["content"] = "\n".join([*texts, *written])
    stop = _STOPS.get(reply["stopReason"], "tool_calls" if "tool_calls" in message else "stop")
    usage = reply["usage"]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_767_225_600,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": stop}],
        "usage": {
            "prompt_tokens": usage["inputTokens"],
            "completion_tokens": usage["outputTokens"],
            "total_tokens": usage["totalTokens"],
        },
    }


def text_reply(text: str, *, stop: str = "end_turn") -> dict[str, Any]:
    return chat_reply(converse_reply([{"text": text}], stop=stop))


def _as_converse(exchange: Exchange) -> Exchange:
    """The same question as Bedrock's stand-in reads it."""
    body, way = exchange.body, way_of(exchange.body)
    user = [{"role": "user", "content": [{"text": m["content"]}]} for m in body["messages"] if m["role"] == "user"]
    text = user[0]["content"][0]["text"]
    if way == "tool":
        schema, name = body["tools"][0]["function"]["parameters"], body["tools"][0]["function"]["name"]
    elif "<candidates>" in text:
        schema, name = {"properties": {"s": {}, "t": {}}}, "judge"
    else:
        schema, name = {"properties": {"summary": {}}}, "describe"
    spec = {"toolSpec": {"name": name, "inputSchema": {"json": schema}}}
    config = {"tools": [spec], "toolChoice": {"tool": {"name": name}}}
    return Exchange("Converse", exchange.model, {"messages": user, "toolConfig": config}, exchange.number)


def _breach_of_messages(body: Mapping[str, Any]) -> str:
    roles = tuple(message.get("role") for message in body.get("messages", ()))
    if roles != _ROLES:
        return f"messages must be of {_ROLES}, not {roles}"
    plain = all(m.keys() == {"role", "content"} and isinstance(m["content"], str) for m in body["messages"])
    return "" if plain else "a message must be a role and a text"


def _breach_of_numbers(body: Mapping[str, Any]) -> str:
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        return "max_tokens must be a positive integer"
    return "" if body.get("temperature") == 0 else "temperature must be 0"
