"""One client of `bedrock-runtime`: what it is asked, how its errors become ours, what it cost."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from boto3.session import Session

from mats.adapters.aws import call, client
from mats.adapters.bedrock.conversing import Converser, Reply, counted, inside, keepable, reply_of, tokens_of
from mats.adapters.bedrock.deadline import Timed
from mats.domain.errors import DependencyFailed
from mats.domain.usage import Prices, Usage
from mats.ports import Kept, Replies

T = TypeVar("T")

_DENIED = {
    "AccessDeniedException": "the cause is the IAM policy of the caller (bedrock:InvokeModel on the model, and "
    "on its inference profile and every region behind it), a policy of the organisation, or a region where the model "
    "is not offered or not enabled"
}


class Meter:
    """What this process has spent, by model."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._totals: dict[str, Usage] = defaultdict(Usage)
        self._lock = threading.Lock()

    def note(self, model: str, input_tokens: object, output_tokens: object = 0) -> Usage:
        """Count one call; what is not a number of tokens counts as none."""
        usage = self.priced(model, input_tokens, output_tokens)
        with self._lock:
            self._totals[model] = self._totals[model].plus(usage)
        return usage

    def priced(self, model: str, input_tokens: object, output_tokens: object = 0) -> Usage:
        """What a call costs or has cost, not counted."""
        return self._prices.usage(model, counted(input_tokens), counted(output_tokens))

    def totals(self) -> dict[str, Usage]:
        """The usage of every model that was called."""
        with self._lock:
            return dict(self._totals)


class Runtime(Converser):
    """A client with its timeouts, number of attempts and errors of ours."""

    def __init__(
        self,
        meter: Meter,
        *,
        timeout_s: float,
        attempts: int = 1,
        connections: int = 10,
        region: str = "",
        session: Session | None = None,
        replies: Replies | None = None,
    ) -> None:
        """Make the client; no call is made.

        Args:
            meter: Where usage is noted.
            timeout_s: How long to wait for a connection, and for the whole of a reply.
            attempts: How often the SDK tries; above 1 it waits in between.
            connections: Kept open for reuse; as many as calls run at once.
            region: Default: the one that AWS's own settings name.
            session: Shared with other clients; default: a new one.
            replies: Where replies of Converse are kept, so that no request is made twice; default: nowhere.

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
        self._meter, self._replies = meter, replies

    @property
    def region(self) -> str:
        """Where the models are asked."""
        return str(self._client.meta.region_name)

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """The reply to a request of Converse; one that is kept costs nothing and is not counted.

        Raises:
            DependencyFailed: the model did not answer; NotPermitted if an operator has to mend that.
        """
        model = str(request["modelId"])
        if self._replies and (kept := self._replies.get(request)):
            usage = self._meter.priced(model, *tokens_of(kept.reply))
            return reply_of(kept.reply, usage, took_ms=kept.took_ms, replayed=True)
        began = time.monotonic()
        answer = self._call(model, lambda: self._client.converse(**request))
        took_ms = (time.monotonic() - began) * 1_000
        usage = self._meter.note(model, *tokens_of(answer))
        if inside(answer, "output") is None:  # what botocore makes of a reply that broke off
            raise DependencyFailed(f"{model} answered no more than the beginning of a reply")
        if self._replies:
            self._replies.keep(request, Kept(keepable(answer), took_ms))
        return reply_of(answer, usage, took_ms=took_ms)

    def invoke(self, model: str, body: Mapping[str, Any]) -> Any:
        """The JSON a model answers to InvokeModel; its input tokens are counted.

        Raises:
            DependencyFailed: as for `ask`, or the answer is not JSON.
        """
        answer = self._call(
            model, lambda: json.loads(self._client.invoke_model(modelId=model, body=json.dumps(body))["body"].read())
        )
        self._meter.note(model, inside(answer, "inputTextTokenCount"))
        return answer

    def _call(self, model: str, operation: Callable[[], T]) -> T:
        return call(f"{model} in {self.region}", operation, denied=_DENIED)
