"""One client of `bedrock-runtime`: what it is asked, how its errors become ours, what it cost."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from boto3.session import Session
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from mats.adapters.aws import BAD_CREDENTIALS, MALFORMED, UNSIGNED, client
from mats.adapters.bedrock.conversing import Converser, Reply, counted, inside, keepable, reply_of, tokens_of
from mats.adapters.bedrock.deadline import Timed
from mats.domain.errors import DependencyFailed, NotPermitted
from mats.domain.text import clip
from mats.domain.usage import Prices, Usage
from mats.ports import Kept, Replies

T = TypeVar("T")


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
        answer = self._called(model, lambda: self._client.converse(**request))
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
        answer = self._called(
            model, lambda: json.loads(self._client.invoke_model(modelId=model, body=json.dumps(body))["body"].read())
        )
        self._meter.note(model, inside(answer, "inputTextTokenCount"))
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
        code = str(inside(error.response, "Error", "Code"))
        said = clip(str(inside(error.response, "Error", "Message") or ""), 300)
        if code == "AccessDeniedException":
            return NotPermitted(
                f"access to {model} in {self.region} was denied ({said}). The cause is the IAM policy of the caller "
                "(bedrock:InvokeModel on the model, and on its inference profile and every region behind that), a "
                "policy of the organisation, or a region where the model is not offered or not enabled"
            )
        if code in BAD_CREDENTIALS:
            return NotPermitted(f"{model}: the AWS credentials are expired or not valid ({code}: {said}); renew them")
        return DependencyFailed(f"{model} in {self.region} did not answer ({code}: {said})")
