"""A metered client of `bedrock-runtime`: Converse and InvokeModel."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from boto3.session import Session

from mats.adapters.aws import call, client, open_connection
from mats.adapters.bedrock.converse import parse_response, token_counts
from mats.adapters.bedrock.deadline import DeadlineSession
from mats.adapters.bedrock.refusals import refusal
from mats.adapters.llm.meter import Meter
from mats.adapters.llm.question import ModelReply, at_path
from mats.domain.errors import DependencyFailed

T = TypeVar("T")


class BedrockClient:
    """Calls models within a timeout, and counts the tokens of every response."""

    def __init__(
        self,
        meter: Meter,
        *,
        timeout_s: float,
        attempts: int = 1,
        connections: int = 10,
        region: str = "",
        session: Session | None = None,
    ) -> None:
        """Make the client; no call is made.

        Args:
            meter: Counts the usage.
            timeout_s: For the connection, and for the whole response.
            attempts: Of the SDK; above 1 it backs off in between.
            connections: Size of the connection pool: the number of concurrent calls.
            region: Default: the one of the AWS configuration.
            session: Shared with other clients; default: a new one.

        Raises:
            DependencyFailed: the AWS configuration cannot be used; the message names the missing setting.
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
        # botocore has no public way to replace its HTTP session; its other configuration stays in force
        self._client._endpoint.http_session = DeadlineSession(self._client._endpoint.http_session, timeout_s)
        self._meter = meter

    @property
    def region(self) -> str:
        """The region of the endpoint."""
        return str(self._client.meta.region_name)

    def open_connection(self) -> None:
        """Connect, so that the next call need not; calls no model.

        Raises:
            DependencyFailed: Bedrock cannot be reached.
        """
        open_connection(self._client)

    def converse(self, request: Mapping[str, Any]) -> ModelReply:
        """The reply to a Converse request.

        Raises:
            DependencyFailed: the model did not answer; NotPermitted if an operator has to act, ModelRefused if
                the model refuses every request.
        """
        model = str(request["modelId"])
        answer = self._call(model, lambda: self._client.converse(**request))
        usage = self._meter.add(model, *token_counts(answer))
        if at_path(answer, "output") is None:  # botocore's parse of a truncated response
            raise DependencyFailed(f"{model} returned a truncated response")
        return parse_response(answer, usage)

    def invoke(self, model: str, body: Mapping[str, Any]) -> Any:
        """The JSON response of InvokeModel; its input tokens are counted.

        Raises:
            DependencyFailed: as for `converse`, or the response is not JSON.
        """
        answer = self._call(
            model, lambda: json.loads(self._client.invoke_model(modelId=model, body=json.dumps(body))["body"].read())
        )
        self._meter.add(model, at_path(answer, "inputTextTokenCount"))
        return answer

    def _call(self, model: str, operation: Callable[[], T]) -> T:
        what = f"{model} in {self.region}"
        return call(what, operation, special=partial(refusal, what, model))
