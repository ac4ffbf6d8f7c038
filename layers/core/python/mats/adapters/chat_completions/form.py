"""Requests of chat completions in the forms that servers take, and their replies; no call is made here.

Servers differ in how a model is made to return JSON, and in which parameters they know. The first form is tried first;
an error that names a part of it leads to the next.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from mats.adapters.llm import FILTERED, MAX_TOKENS, ModelReply, Question, ToolCall
from mats.domain.prompts.usage import Usage
from mats.domain.protocols.values import value_at


class Output(StrEnum):
    """How a model is made to return JSON, the strictest first."""

    TOOL = "tool"  # A forced tool call
    SCHEMA = "schema"  # `response_format` with a JSON schema
    JSON = "json"  # `response_format` for any JSON object
    TEXT = "text"  # Instructions only


@dataclass(frozen=True, slots=True)
class Form:
    """One form of request. `limit` is the parameter of the token limit; `tempered`: with temperature 0."""

    output: Output = Output.TOOL
    limit: str = "max_tokens"
    tempered: bool = True

    def after_refusal(self, message: str, model: str) -> "Form | None":
        """The form to try after an error; None if the error is not about the form or there is no other."""
        said = message.replace(model, "")
        if self.limit != _NEWER_LIMIT and _NEWER_LIMIT in said:
            return replace(self, limit=_NEWER_LIMIT)
        if self.tempered and "temperature" in said:
            return replace(self, tempered=False)
        if self.output is not Output.TEXT and _OUTPUT.search(said):
            return self.with_next_output()
        return None

    def applied_to(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request in the first form, with this form's limit and temperature."""
        left_out = {"max_tokens"} if self.tempered else {"max_tokens", "temperature"}
        rest = {name: value for name, value in request.items() if name not in left_out}
        return {**rest, self.limit: request["max_tokens"]}

    def with_next_output(self) -> "Form":
        """The same with the next way to JSON; itself if there is none."""
        ways = list(Output)
        return replace(self, output=ways[min(ways.index(self.output) + 1, len(ways) - 1)])


_NEWER_LIMIT = "max_completion_tokens"
_OUTPUT = re.compile(
    r"\b(tools?|functions?|response_?format|json_?(schema|object)?|schema|jinja|grammar)\b", re.IGNORECASE
)
_THOUGHT = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)
_STOPS = {"length": MAX_TOKENS, "content_filter": FILTERED}


def request_of(question: Question, form: Form) -> dict[str, Any]:
    """The request of a question. Texts are one user message, since some templates want roles to alternate."""
    prompt, tool = question.prompt, question.prompt.tool
    forced = form.output is Output.TOOL
    system = prompt.system if forced else f"{prompt.system}\n\n{prompt.parts['plain']}"
    request: dict[str, Any] = {
        "model": question.model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(question.texts)}],
        form.limit: question.max_tokens,
        **({"temperature": 0} if form.tempered else {}),
    }
    schema = _with_lengths(tool["schema"], question.lengths)
    match form.output:
        case Output.TOOL:
            function = {"name": tool["name"], "description": tool["description"], "parameters": schema}
            # `required`: more servers take it than the name of the tool, and there is only one
            request |= {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
        case Output.SCHEMA:
            named = {"name": tool["name"], "strict": True, "schema": {**schema, "additionalProperties": False}}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        case Output.JSON:
            request["response_format"] = {"type": "json_object"}
    return request


def _with_lengths(schema: Mapping[str, Any], lengths: Mapping[str, int]) -> dict[str, Any]:
    """The schema with exact numbers of items."""
    properties = {
        name: {**shape, "minItems": lengths[name], "maxItems": lengths[name]} if name in lengths else shape
        for name, shape in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def parse_answer(answer: object, usage: Usage) -> ModelReply | None:
    """The reply in a response; None if it has none. Parts of an unexpected shape are skipped."""
    choices = value_at(answer, "choices")
    message = value_at(choices[0], "message") if isinstance(choices, list) and choices else None
    if not isinstance(message, Mapping):
        return None
    calls = message.get("tool_calls")
    stop = str(value_at(choices[0], "finish_reason") or "")
    refused = isinstance(message.get("refusal"), str) and message["refusal"]
    return ModelReply(
        stop=FILTERED if refused else _STOPS.get(stop, stop),
        calls=tuple(_call(call) for call in calls if isinstance(call, Mapping)) if isinstance(calls, list) else (),
        text=_THOUGHT.sub("", _text(message.get("content"))),
        usage=usage,
    )


def _call(call: Mapping[str, Any]) -> ToolCall:
    name = value_at(call, "function", "name")
    return ToolCall(str(call.get("id") or ""), str(name or ""), _arguments(value_at(call, "function", "arguments")))


def _arguments(said: object) -> object:
    """Arguments, which are JSON in a text; the text itself if it is not JSON."""
    if not isinstance(said, str):
        return said
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return said


def _text(content: object) -> str:
    """The text of a message, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(text for part in parts if isinstance(text := value_at(part, "text"), str))
