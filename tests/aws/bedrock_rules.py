"""Requests that Amazon Bedrock's runtime refuses.

Routes, shapes and error codes are those of botocore's description of the service. botocore checks types, required
members and minimums only; here every limit counts, and so do the rules that only the service's documentation tells,
in the service's own words where those are known.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.message import Message
from typing import Any, NoReturn
from urllib.parse import unquote

import botocore.session
from botocore.model import OperationModel, Shape
from botocore.validate import ParamValidator

TITAN, COHERE = "amazon.titan-embed-text-v2:0", "cohere.embed-v4:0"
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=[^/,]+/\d{8}/[^/,]+/bedrock/aws4_request,.*Signature=[0-9a-f]{64}")
_OF_EVERY_SERVICE = {
    "ExpiredTokenException": 403,
    "InvalidSignatureException": 403,
    "MissingAuthenticationTokenException": 403,
    "UnrecognizedClientException": 403,
    "UnknownOperationException": 404,
}


class Refused(Exception):
    """A request does not pass: the error's code and message."""

    def __init__(self, message: str, code: str = "ValidationException") -> None:
        super().__init__(message)
        self.code = code


class Contract:
    """The service model of botocore, read once, and the rules that it lacks."""

    def __init__(self) -> None:
        service = botocore.session.get_session().get_service_model("bedrock-runtime")
        operations = [service.operation_model(name) for name in service.operation_names]
        self._routes = [(op.http["method"], _pattern(op.http["requestUri"]), op) for op in operations]
        self._reply = service.operation_model("Converse").output_shape
        known = {shape.error_code: shape.metadata["error"]["httpStatusCode"] for shape in service.error_shapes}
        self.status: Mapping[str, int] = _OF_EVERY_SERVICE | known

    def read(self, method: str, path: str, headers: Message, content: bytes) -> tuple[str, str, dict[str, Any]]:
        """Operation, model id and JSON body of a request.

        Raises:
            Refused: the service would not take it.
        """
        if not _SIGNED.fullmatch(headers.get("Authorization") or ""):
            raise Refused("Missing Authentication Token", "MissingAuthenticationTokenException")
        operation, named = self._route(method, path)
        if operation.name not in ("Converse", "InvokeModel"):
            raise Refused(f"{operation.name} is not served here.", "ResourceNotFoundException")
        said = _members(operation, named, headers, content)
        model = said.pop("modelId")
        if operation.name == "InvokeModel":
            return operation.name, model, _embedding_request(said["body"], model)
        for breach in _breaches(said, model):
            raise Refused(breach)
        return operation.name, model, said

    def complaint_about_reply(self, body: Any) -> str:
        """The faults of a body as a reply of Converse; nothing if it is one."""
        return _complaint(body, self._reply)

    def _route(self, method: str, path: str) -> tuple[OperationModel, dict[str, str]]:
        for wanted, pattern, operation in self._routes:
            if method == wanted and (found := pattern.fullmatch(path.partition("?")[0])):
                return operation, {name: unquote(text) for name, text in found.groupdict().items()}
        raise Refused(f"There is no operation {method} {path}.", "UnknownOperationException")


def _pattern(uri: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", uri))


def _members(operation: OperationModel, named: Mapping[str, str], headers: Message, content: bytes) -> dict[str, Any]:
    """What a request says by member name, each taken from its own place only: path, header or body."""
    shape = operation.input_shape
    elsewhere = {name: m.serialization for name, m in shape.members.items() if "location" in m.serialization}
    sent = {name: headers.get(place["name"]) for name, place in elsewhere.items() if place["location"] == "header"}
    said: dict[str, Any] = {name: text for name, text in sent.items() if text is not None} | dict(named)
    if payload := shape.serialization.get("payload"):
        said[payload] = content
    else:
        body = _json_object(content, "The request body is not a JSON object.")
        for stray in body.keys() & elsewhere.keys():
            raise Refused(f'Unknown parameter in input: "{stray}" does not belong into the body')
        said |= body
    if complaint := _complaint(said, shape):
        raise Refused(complaint)
    return said


def _json_object(content: bytes, problem: str) -> dict[str, Any]:
    """The JSON object in a body, by the letter of the standard: no NaN, no infinity."""

    def number(name: str) -> NoReturn:
        raise ValueError(name)

    with suppress(ValueError, RecursionError):
        if isinstance(body := json.loads(content, parse_constant=number), dict):
            return body
    raise Refused(problem)


def _complaint(value: Any, shape: Shape) -> str:
    """The faults of a value for a shape; nothing if it fits."""
    report = ParamValidator().validate(value, shape)
    if report.has_errors():
        return str(report.generate_report())
    for path, rule in _excesses(value, shape, ""):
        return f"1 validation error detected: Value at '{path[1:]}' failed to satisfy constraint: Member must {rule}"
    return ""


def _excesses(value: Any, shape: Shape, path: str) -> Iterator[tuple[str, str]]:
    """Where a value of the right types breaks a limit, and which."""
    if shape.type_name == "structure":
        if not shape.is_document_type:
            for name, member in value.items():
                yield from _excesses(member, shape.members[name], f"{path}.{name}")
        return
    yield from ((path, rule) for rule in _broken_limits(value, shape))
    if shape.type_name == "list":
        for index, member in enumerate(value):
            yield from _excesses(member, shape.member, f"{path}[{index}]")
    elif shape.type_name == "map":
        for key, member in value.items():
            yield from _excesses(key, shape.key, f"{path} (key: {key})")
            yield from _excesses(member, shape.value, f"{path}.{key}")


def _broken_limits(value: Any, shape: Shape) -> Iterator[str]:
    what, size = _size(value, shape)
    limits = shape.metadata
    if size is None:
        yield f"be {what}"
    elif size < limits.get("min", size):
        yield f"have {what} greater than or equal to {limits['min']}"
    elif size > limits.get("max", size):
        yield f"have {what} less than or equal to {limits['max']}"
    elif value not in limits.get("enum", [value]):
        yield f"satisfy enum value set: [{', '.join(limits['enum'])}]"
    elif "pattern" in limits and not re.fullmatch(limits["pattern"], value):
        yield f"satisfy regular expression pattern: {limits['pattern']}"


def _size(value: Any, shape: Shape) -> tuple[str, float | None]:
    """What a limit is about, and how much of it there is; None where botocore took a value of the wrong type."""
    if shape.type_name == "boolean":
        return "value", 0
    if shape.type_name in ("integer", "long", "float", "double"):
        return ("a number", None) if isinstance(value, bool) else ("value", value)
    if shape.type_name == "blob" and isinstance(value, str):
        try:
            return "length", len(base64.b64decode(value, validate=True))
        except ValueError:
            return "base64", None
    return "length", len(value)


def _breaches(body: Mapping[str, Any], model: str) -> Iterator[str]:
    """The rules of Converse that no shape tells."""
    yield from _breaches_of_turns(body.get("messages", []))
    for i, block in enumerate(body.get("system", [])):
        if not block.get("text", "-").strip():
            yield f"The text field in the SystemContentBlock object at system.{i} is blank. Add text to the text field."
    if "toolConfig" in body:
        yield from _breaches_of_tools(body["toolConfig"], model)
    elif any({"toolUse", "toolResult"} & block.keys() for m in body["messages"] for block in m["content"]):
        yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."


def _breaches_of_turns(messages: list[dict[str, Any]]) -> Iterator[str]:
    roles = [message["role"] for message in messages]
    if roles[:1] != ["user"]:
        yield (
            "A conversation must start with a user message. "
            "Try again with a conversation that starts with a user message."
        )
    if any(role != ("user", "assistant")[i % 2] for i, role in enumerate(roles)):
        yield (
            "A conversation must alternate between user and assistant roles. "
            "Make sure the conversation alternates between user and assistant roles and try again."
        )
    for i, message in enumerate(messages):
        if not message["content"]:
            yield f"The content field in the Message object at messages.{i} is empty. Add a ContentBlock object to it."
        for j, block in enumerate(message["content"]):
            if not block.get("text", "-").strip():
                yield (
                    f"The text field in the ContentBlock object at messages.{i}.content.{j} is blank. "
                    "Add text to the text field, and try again."
                )


def _breaches_of_tools(config: Mapping[str, Any], model: str) -> Iterator[str]:
    specs = {i: tool["toolSpec"] for i, tool in enumerate(config["tools"]) if "toolSpec" in tool}
    for i, spec in specs.items():
        schema, where = spec["inputSchema"]["json"], f"toolConfig.tools.{i}.toolSpec.inputSchema.json"
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"The value at {where}.type must be one of the following: object."
        elif "amazon.nova" in model and (extra := sorted(schema.keys() - {"type", "properties", "required"})):
            yield f"The value at {where} takes only type, properties and required. Remove {extra[0]} and try again."
    choice, named = next(iter(config.get("toolChoice", {}).items()), ("auto", {}))
    if not _supports(choice, model):
        field = f"toolConfig.toolChoice.{choice}"
        yield f"This model doesn't support the {field} field. Remove {field} and try again."
    names = [spec["name"] for spec in specs.values()]
    if len(set(names)) < len(names):
        yield "The tool names at toolConfig.tools must be unique."
    if choice == "tool" and named["name"] not in names:
        yield f"The value at toolConfig.toolChoice.tool.name must be one of the following: {', '.join(names)}."


def _supports(choice: str, model: str) -> bool:
    able = {"auto": [""], "any": ["amazon.nova", "anthropic.", "mistral."], "tool": ["amazon.nova", "anthropic."]}
    return any(family in model for family in able[choice])


def _embedding_request(content: bytes, model: str) -> dict[str, Any]:
    """The body of a request for an embedding by Titan or Cohere, the models served here besides those of Converse."""
    named = model.rpartition("/")[2]
    if named not in (TITAN, COHERE):
        raise Refused("The provided model identifier is invalid.")
    body = _json_object(content, "Malformed input request, please reformat your input and try again.")
    if named == COHERE:
        for fault in _malformations_for_cohere(body):
            raise Refused(f"Malformed input request: {fault}, please reformat your input and try again.")
        return body
    for fault in _malformations(body):
        raise Refused(f"Malformed input request: {fault}, please reformat your input and try again.")
    if (count := tokens(body["inputText"])) > 8192:
        raise Refused(
            f"400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: {count}"
        )
    return body


def _malformations_for_cohere(body: Mapping[str, Any]) -> Iterator[str]:
    """Of texts alone; images are not served here."""
    known = {"input_type", "texts", "embedding_types", "output_dimension", "max_tokens", "truncate"}
    for key in sorted(body.keys() - known):
        yield f"#: extraneous key [{key}] is not permitted"
    if body.get("input_type") not in ("search_document", "search_query", "classification", "clustering"):
        yield f"#/input_type: {body.get('input_type')} is not a valid enum value"
    texts = body.get("texts")
    if not isinstance(texts, list) or not 1 <= len(texts) <= 96 or not all(isinstance(t, str) and t for t in texts):
        yield "#/texts: expected 1 to 96 strings"
    if body.get("embedding_types", ["float"]) != ["float"]:
        yield "#/embedding_types: only float is served here"
    if body.get("output_dimension", 1536) not in (256, 512, 1024, 1536):
        yield f"#/output_dimension: {body['output_dimension']} is not a valid enum value"


def _malformations(body: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(body.keys() - {"inputText", "dimensions", "normalize", "embeddingTypes"}):
        yield f"#: extraneous key [{key}] is not permitted"
    if "inputText" not in body:
        yield "#: required key [inputText] not found"
    elif not isinstance(text := body["inputText"], str):
        yield "#/inputText: expected type: String"
    elif not text:
        yield "#/inputText: expected minLength: 1, actual: 0"
    elif len(text) > 50_000:
        yield f"#/inputText: expected maxLength: 50000, actual: {len(text)}"
    if (size := body.get("dimensions", 1024)) not in (256, 512, 1024) or not isinstance(size, int):
        yield f"#/dimensions: {size} is not a valid enum value"
    if not isinstance(body.get("normalize", True), bool):
        yield "#/normalize: expected type: Boolean"
    types = body.get("embeddingTypes", ["float"])
    if not isinstance(types, list) or not types or any(kind not in ("float", "binary") for kind in types):
        yield f"#/embeddingTypes: {types} is not a valid enum value"


def tokens(text: str) -> int:
    return max(1, len(text.encode(errors="replace")) // 4)
