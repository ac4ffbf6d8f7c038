"""A metered client of `bedrock-runtime`, Converse and InvokeModel."""

import io
import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from urllib3.exceptions import HTTPError

from mats.adapters.aws import call, client, open_connection
from mats.adapters.bounded import read_bounded
from mats.adapters.llm import MALFORMED, MAX_BYTES, Meter, ModelReply, Question, ToolCall
from mats.domain.errors import DependencyFailed, ModelRefused
from mats.domain.prompts.usage import Usage
from mats.domain.protocols.values import objects, value_at
from mats.domain.text.words import clip
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


class Dialect(NamedTuple):
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


def parse_response(answer: object, usage: Usage) -> ModelReply:
    """The reply in a response of any shape; parts of an unexpected shape are skipped."""
    blocks = objects(value_at(answer, "output", "message", "content"))
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    return ModelReply(
        stop=str(value_at(answer, "stopReason") or ""),
        calls=tuple(
            ToolCall(str(value_at(use, "toolUseId") or ""), str(value_at(use, "name") or ""), value_at(use, "input"))
            for use in uses
        ),
        text="\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str)),
        usage=usage,
    )


T = TypeVar("T")


class BedrockClient:
    """Calls models within a timeout, and counts the tokens of every response."""

    def __init__(self, meter: Meter, *, timeout_s: float, **options: Any) -> None:
        """Make the client, with other options and the errors of `aws.client`; no call is made.

        `timeout_s` is for the connection, and for the whole response.
        """
        self._client: Any = client("bedrock-runtime", timeout_s=timeout_s, called="Bedrock", **options)
        # botocore has no public way to replace its HTTP session; its other configuration stays in force
        self._client._endpoint.http_session = DeadlineSession(self._client._endpoint.http_session, timeout_s)
        self._meter = meter

    @property
    def region(self) -> str:
        return str(self._client.meta.region_name)

    def open_connection(self) -> None:
        """Connect, so that the next call need not; calls no model.

        Raises DependencyFailed: Bedrock cannot be reached.
        """
        open_connection(self._client)

    def converse(self, request: Mapping[str, Any]) -> ModelReply:
        """The reply to a Converse request; a malformed one, if the service could not read what the model said.

        Raises DependencyFailed: the model did not answer; NotPermitted if an operator has to act, ModelRefused if the
        model refuses every request.
        """
        model = str(request["modelId"])
        try:
            answer = self._call(model, lambda: self._client.converse(**request), answers=_UNREADABLE)
        except ClientError as error:
            return ModelReply(stop=f"{MALFORMED}output: {clip(str(error), 300)}", calls=(), text="", usage=Usage())
        spent = value_at(answer, "usage")
        usage = self._meter.add(model, value_at(spent, "inputTokens"), value_at(spent, "outputTokens"))
        if value_at(answer, "output") is None:  # botocore's parse of a truncated response
            raise DependencyFailed(f"{model} returned a truncated response")
        return parse_response(answer, usage)

    def invoke(self, model: str, body: Mapping[str, Any]) -> Any:
        """The JSON response of InvokeModel; its input tokens are counted.

        Raises DependencyFailed: as for `converse`, or the response is not JSON.
        """
        answer = self._call(
            model, lambda: json.loads(self._client.invoke_model(modelId=model, body=json.dumps(body))["body"].read())
        )
        self._meter.add(model, value_at(answer, "inputTextTokenCount"))
        return answer

    def _call(self, model: str, operation: Callable[[], T], *, answers: Collection[str] = ()) -> T:
        what = f"{model} in {self.region}"
        return call(what, operation, answers=answers, special=partial(refusal, what, model))


_UNREADABLE = ("ModelErrorException",)
"""For a tool call of Nova that breaks the form or is cut off; at temperature 0 a repetition gets it, too."""


class DeadlineSession:
    """An HTTP session of botocore with a deadline and a size limit for the response body.

    The session's own timeout still applies to each chunk, so a response may take that much longer.
    """

    def __init__(self, session: Any, seconds: float) -> None:
        self._session, self._seconds = session, seconds

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """The response with its body in memory.

        Raises ReadTimeoutError: the body was not complete before the deadline. ConnectionClosedError: the body was
        truncated or too large.
        """
        deadline = time.monotonic() + self._seconds
        request.stream_output = True  # the session returns the body unread
        response = self._session.send(request)
        try:
            body = read_bounded(response.raw.read1, deadline, MAX_BYTES)
        except TimeoutError as error:
            response.raw.close()
            raise ReadTimeoutError(endpoint_url=request.url) from error
        except (HTTPError, OSError, OverflowError) as error:
            response.raw.close()
            raise ConnectionClosedError(endpoint_url=request.url, error=error) from error
        return AWSResponse(response.url, response.status_code, response.headers, _BufferedBody(body))

    def close(self) -> None:
        self._session.close()


class _BufferedBody(io.BytesIO):
    """A body in memory with the `stream` method that botocore calls."""

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()


# Errors that no retry resolves: the model will refuse every request of this configuration. The code alone decides for
# AccessDeniedException and ResourceNotFoundException. A ValidationException is also what one request that is too long
# or malformed gets, with the same code; so its text decides, and only texts that AWS is known to send for a model, an
# account or a request form count. Any other text stays an error that is retried: a wrong guess would then cost retries,
# not profiles. ModelNotReadyException passes by itself.
_CAUSES = {
    "AccessDeniedException": "the cause is the IAM policy of the caller (bedrock:InvokeModel on the model, and "
    "on its inference profile and every region behind it), a policy of the organisation, or a region where the model "
    "is not offered or not enabled",
    "ResourceNotFoundException": "the model does not exist in this region, has reached the end of its life, or is not "
    "enabled for this account; choose another model or enable it",
    "ValidationException": "the model cannot be called in this way, in this region or by this account; choose another "
    "model or inference profile",
}
_PERMANENT_TEXTS = re.compile(
    "|".join(
        (
            r"on-demand throughput isn.t supported",
            r"doesn.t support on-demand throughput",
            r"model identifier is invalid",
            r"model ID is not supported",
            r"could not resolve the foundation model",
            r"don.t have access to the model",
            r"account is not authorized to invoke",
            r"^operation not allowed",
            r"access to (amazon )?bedrock models is not allowed",
            r"doesn.t support (the )?(model that you provided|tool use|system messages|toolConfig|toolChoice|"
            r"additionalModelRequestFields|inferenceConfig)",
            r"maximum tokens you requested exceeds the model limit",
            r"extraneous key \[\w+\] is not permitted",
            r"required key \[\w+\] not found",
        )
    ),
    re.IGNORECASE,
)
"""Parts of ValidationException's messages that depend on model, account or form of the request, never on one item."""


def refusal(what: str, model: str, code: str, message: str) -> ModelRefused | None:
    """The error for a permanent refusal; None if the call may succeed another time or for another text.

    `what` is model and region, for the message.
    """
    if code not in _CAUSES or (code == "ValidationException" and not _PERMANENT_TEXTS.search(message)):
        return None
    text = f"{what} cannot be used ({code}: {message}); {_CAUSES[code]}"
    return ModelRefused(text, model=model, cause=f"{code}: {message}")
