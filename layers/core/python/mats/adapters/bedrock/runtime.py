"""One client of `bedrock-runtime`: what it is asked, how its errors become ours, what it cost."""

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from mats.adapters.aws import BAD_CREDENTIALS, MALFORMED, UNSIGNED, client
from mats.adapters.bedrock.deadline import Timed
from mats.domain.errors import DependencyFailed, NotPermitted
from mats.domain.prompt import Prompt
from mats.domain.text import clip
from mats.domain.usage import Prices, Usage

T = TypeVar("T")


class Meter:
    """What this process has spent, by model."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._totals: dict[str, Usage] = defaultdict(Usage)
        self._lock = threading.Lock()

    def note(self, model: str, input_tokens: object, output_tokens: object = 0) -> Usage:
        """Count one call; what is not a number of tokens counts as none."""
        usage = self._prices.usage(model, _count(input_tokens), _count(output_tokens))
        with self._lock:
            self._totals[model] = self._totals[model].plus(usage)
        return usage

    def totals(self) -> dict[str, Usage]:
        """The usage of every model that was called."""
        with self._lock:
            return dict(self._totals)


def _count(tokens: object) -> int:
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered: through the tool (`arguments`, any JSON), or in words, or both, or not at all."""

    stop: str
    tool: str
    arguments: object
    text: str
    usage: Usage

    @property
    def refused(self) -> bool:
        """Whether the model or a guardrail declined."""
        return self.stop in ("content_filtered", "guardrail_intervened")

    @property
    def malformed(self) -> bool:
        """Whether the service itself says that the model broke the form."""
        return self.stop.startswith("malformed_")

    @property
    def cut_off(self) -> bool:
        """Whether it ran out of tokens."""
        return self.stop in ("max_tokens", "model_context_window_exceeded")


class Runtime:
    """A client with its timeouts, number of attempts and errors of ours."""

    def __init__(
        self,
        meter: Meter,
        *,
        timeout_s: float,
        attempts: int = 1,
        connections: int = 10,
        region: str = "",
        session: boto3.session.Session | None = None,
    ) -> None:
        """Make the client; no call is made.

        Args:
            meter: Where usage is noted.
            timeout_s: How long to wait for a connection, and for the whole of a reply.
            attempts: How often the SDK tries; above 1 it waits in between.
            connections: Kept open for reuse; as many as calls run at once.
            region: Default: the one that AWS's own settings name.
            session: Shared by clients of one service, which then read its model once.

        Raises:
            DependencyFailed: AWS's own settings cannot be used; the message says what is missing.
        """
        self._client: Any = client(
            "bedrock-runtime",
            region=region,
            timeout_s=timeout_s,
            attempts=attempts,
            connections=connections,
            called="Bedrock",
            session=session,
        )
        # Botocore has no public place for this; whatever else its session is configured by stays in force.
        self._client._endpoint.http_session = Timed(self._client._endpoint.http_session, timeout_s)
        self._meter = meter

    @property
    def region(self) -> str:
        """Where the models are asked."""
        return str(self._client.meta.region_name)

    def converse(self, model: str, prompt: Prompt, *texts: str, max_tokens: int) -> Reply:
        """One Converse call at temperature 0: the texts as one user message, answered through the prompt's tool.

        Raises:
            DependencyFailed: the model did not answer; NotPermitted if an operator has to mend that.
        """
        request = _request(model, prompt, texts, max_tokens)
        answer = self._called(model, lambda: self._client.converse(**request))
        spent = _inside(answer, "usage")
        usage = self._meter.note(model, _inside(spent, "inputTokens"), _inside(spent, "outputTokens"))
        if _inside(answer, "output") is None:  # what botocore makes of a reply that broke off
            raise DependencyFailed(f"{model} answered no more than the beginning of a reply")
        return _reply(answer, usage)

    def invoke(self, model: str, body: Mapping[str, Any]) -> Any:
        """The JSON a model answers to InvokeModel; its input tokens are counted.

        Raises:
            DependencyFailed: as for `converse`, or the answer is not JSON.
        """
        answer = self._called(
            model, lambda: json.loads(self._client.invoke_model(modelId=model, body=json.dumps(body))["body"].read())
        )
        self._meter.note(model, _inside(answer, "inputTextTokenCount"))
        return answer

    def _called(self, model: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except ClientError as error:
            raise self._refusal(model, error) from error
        except UNSIGNED as error:
            raise NotPermitted(f"{model}: {error}; give AWS credentials, for example with `aws sso login`") from error
        except (BotoCoreError, HTTPError) as error:  # urllib3's own, where the body of an error breaks off
            raise DependencyFailed(f"{model} did not answer: {clip(str(error), 300)}") from error
        except MALFORMED as error:
            raise DependencyFailed(f"{model} answered something that is no reply of Bedrock's") from error

    def _refusal(self, model: str, error: ClientError) -> DependencyFailed:
        code = str(_inside(error.response, "Error", "Code"))
        said = clip(str(_inside(error.response, "Error", "Message") or ""), 300)
        if code == "AccessDeniedException":
            return NotPermitted(
                f"access to {model} in {self.region} was denied ({said}). The cause is the IAM policy of the caller "
                "(bedrock:InvokeModel on the model, and on its inference profile and every region behind that), a "
                "policy of the organisation, or a region where the model is not offered or not enabled"
            )
        if code in BAD_CREDENTIALS:
            return NotPermitted(f"{model}: the AWS credentials are expired or not valid ({code}: {said}); renew them")
        return DependencyFailed(f"{model} in {self.region} did not answer ({code}: {said})")


def _request(model: str, prompt: Prompt, texts: tuple[str, ...], max_tokens: int) -> dict[str, Any]:
    request: dict[str, Any] = {
        "modelId": model,
        "system": [{"text": prompt.system}],
        "messages": [{"role": "user", "content": [{"text": text} for text in texts]}],
        "inferenceConfig": {"maxTokens": max_tokens, "temperature": 0.0},
    }
    dialect = dialect_of(model)
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


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a family of models is made to answer in a form: by a forced tool, or (None) by being told so in words."""

    choice: str | None
    extra: Mapping[str, Any]


def dialect_of(model: str) -> Dialect:
    """The dialect of a model id, an inference profile's id or an ARN.

    `toolChoice` by Bedrock's API reference: `tool` for Claude and Nova, `any` for Mistral Large, too. An ARN that does
    not name its model is taken for one of the first two.
    """
    if "amazon.nova" in model:
        return Dialect("tool", {"inferenceConfig": {"topK": 1}})
    if "anthropic." in model or model.startswith("arn:"):
        return Dialect("tool", {})
    return Dialect("any", {}) if "mistral-large" in model else Dialect(None, {})


def _reply(answer: object, usage: Usage) -> Reply:
    """What is there of a reply, whatever its shape."""
    content = _inside(answer, "output", "message", "content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    call = next((block["toolUse"] for block in blocks if "toolUse" in block), None)
    return Reply(
        stop=str(_inside(answer, "stopReason") or ""),
        tool=str(_inside(call, "name") or ""),
        arguments=_inside(call, "input"),
        text="\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str)),
        usage=usage,
    )


def _inside(value: object, *path: str) -> Any:
    """What a value holds under nested keys; None where there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
