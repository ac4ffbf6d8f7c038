"""The model that answers where a test has nothing to play: it judges, describes and embeds by the words texts share."""

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.aws.bedrock_rules import tokens


@dataclass(frozen=True)
class Exchange:
    """One request that passed validation; `number` counts them from 1 in order of arrival."""

    operation: str
    model: str
    body: dict[str, Any]
    number: int


def converse_reply(
    content: list[dict[str, Any]], *, stop: str = "tool_use", input_tokens: int = 100, output_tokens: int = 20
) -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop,
        "usage": {
            "inputTokens": input_tokens,
            "outputTokens": output_tokens,
            "totalTokens": input_tokens + output_tokens,
        },
        "metrics": {"latencyMs": 1},
    }


def tool_reply(exchange_or_name: Exchange | str, arguments: Any, **more: Any) -> dict[str, Any]:
    """A reply that calls the forced tool of a request, or the tool of that name; `more` goes to `converse_reply`."""
    name = exchange_or_name
    if isinstance(exchange_or_name, Exchange):
        name = _forced_tool(exchange_or_name.body)["name"]
    return converse_reply([{"toolUse": {"toolUseId": "tooluse_1", "name": name, "input": arguments}}], **more)


def _forced_tool(body: Mapping[str, Any]) -> dict[str, Any]:
    """The specification of the tool that must be called; empty if none must."""
    config = body.get("toolConfig", {})
    choice = config.get("toolChoice", {})
    specs = [tool["toolSpec"] for tool in config.get("tools", []) if "toolSpec" in tool]
    wanted = [choice["tool"]["name"]] if "tool" in choice else [spec["name"] for spec in specs if "any" in choice]
    return next((spec for spec in specs if spec["name"] in wanted), {})


def thought(exchange: Exchange) -> dict[str, Any]:
    if exchange.operation == "InvokeModel":
        return _embedded(exchange.body)
    cost = {"input_tokens": len(json.dumps(exchange.body)) // 4}
    tool = _forced_tool(exchange.body)
    if not tool:
        return converse_reply([{"text": "ok"}], stop="end_turn", output_tokens=1, **cost)
    text = "\n".join(b.get("text", "") for m in exchange.body["messages"] if m["role"] == "user" for b in m["content"])
    properties = tool["inputSchema"]["json"].get("properties", {})
    arguments: dict[str, Any] = {}
    if "s" in properties:
        judged = _judged(json.loads(_fenced(text, "request")), _fenced(text, "candidates").splitlines())
        arguments = {key: value for key, value in judged.items() if key in properties}
    elif "summary" in properties:
        arguments = _described(json.loads(_fenced(text, "registration")))
    return tool_reply(exchange, arguments, output_tokens=len(json.dumps(arguments)) // 3, **cost)


def _fenced(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\s*(.*?)\s*</{tag}>", text, re.DOTALL)
    assert found, f"the request has no <{tag}>"
    return found[1]


def _judged(request: str, candidates: list[str]) -> dict[str, Any]:
    """Each candidate's share of the request's words; a line begins with its number and its kind."""
    wanted = {word for word in _words(request) if len(word) > 2}
    held = [set(_words(candidate)) for candidate in candidates]
    scores = [round(100 * len(wanted & words) / max(1, len(wanted))) for words in held]
    best = candidates[scores.index(max(scores))].split() if candidates else []
    return {"t": best[1] if len(best) > 1 else "", "s": scores}


def _described(registration: Mapping[str, Any]) -> dict[str, Any]:
    """The five fields in the registration's own words."""
    description = str(registration.get("description") or "")
    words = _words(f"{registration.get('name', '')} {description}")
    return {
        "summary": re.split(r"(?<=[.!?])\s", description.strip())[0],
        "action": " ".join(_words(description)[:12]),
        "keywords": list(dict.fromkeys(word for word in words if len(word) > 2))[:8],
        "positive_examples": [" ".join(words[:8]), " ".join(words[-8:])],
        "negative_examples": [" ".join(words[::2][:8])],
    }


def _embedded(body: Mapping[str, Any]) -> dict[str, Any]:
    """A bag of hashed words: texts that share words are close."""
    if "texts" in body:
        size = body.get("output_dimension", 1536)
        vectors = [_embedded({"inputText": text, "dimensions": size})["embedding"] for text in body["texts"]]
        return {
            "id": "e1",
            "response_type": "embeddings_by_type",
            "texts": body["texts"],
            "embeddings": {"float": vectors},
        }
    text, size = body["inputText"], body.get("dimensions", 1024)
    counts = Counter(zlib.crc32(word.encode(errors="replace")) % size for word in _words(text) or [text])
    length = math.sqrt(sum(n * n for n in counts.values())) if body.get("normalize", True) else 1.0
    vector = [counts[i] / length if i in counts else 0.0 for i in range(size)]
    forms = {"float": vector, "binary": [int(x > 0) for x in vector]}
    asked = {kind: forms[kind] for kind in body.get("embeddingTypes", ["float"])}
    return {"embedding": vector, "embeddingsByType": asked, "inputTextTokenCount": tokens(text)}


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())
