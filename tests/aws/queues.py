"""SQS queues, and the event source mappings that hand their messages to functions, over a clock that a test moves."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.aws import iam
from tests.aws.deployment import Deployment, Misconfigured, Resource
from tests.aws.runtime import Invocation


class Clock:
    """The time of this machine, and how far a test has moved it on."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def move_to(self, time: datetime) -> None:
        self._ahead += max(time - self.now(), timedelta())


@dataclass
class Message:
    """A message in a queue; `received` is how often it was handed out."""

    id: str
    body: str
    sent: datetime
    visible: datetime  # From when it is handed out
    received: int = 0

    @property
    def content(self) -> Any:
        return json.loads(self.body)


@dataclass
class Queue:
    """A queue with its attributes and, if it has one, the queue of messages that were received too often."""

    name: str
    arn: str
    visibility: timedelta
    retention: timedelta
    limit: int | None = None
    dead: "Queue | None" = None
    messages: list[Message] = field(default_factory=list)

    def receive(self, count: int, now: datetime) -> list[Message]:
        """Hand out visible messages, which nobody sees until their visibility timeout is over.

        One that was received too often is moved instead: its next receive is what SQS moves it at. Raises
        AssertionError: a message has expired, which loses it.
        """
        taken: list[Message] = []
        for message in [each for each in self.messages if each.visible <= now]:
            assert now - message.sent <= self.retention, f"{self.name} has lost a message of {message.sent}"
            if self.dead and self.limit is not None and message.received >= self.limit:
                self.messages.remove(message)
                self.dead.messages.append(message)
            elif len(taken) < count:
                message.received += 1
                message.visible = now + self.visibility
                taken.append(message)
        return taken


def queues_of(deployment: Deployment) -> dict[str, Queue]:
    found = {
        each.arn: Queue(
            each.ref.rpartition("/")[2],
            each.arn,
            timedelta(seconds=each.get("VisibilityTimeout", 30)),
            timedelta(seconds=each.get("MessageRetentionPeriod", 345_600)),
        )
        for each in deployment.all("AWS::SQS::Queue")
    }
    for resource in deployment.all("AWS::SQS::Queue"):
        redrive = resource.get("RedrivePolicy")
        if redrive:
            queue = found[resource.arn]
            queue.limit, target = int(redrive["maxReceiveCount"]), redrive["deadLetterTargetArn"]
            if target not in found:
                raise Misconfigured(f"{queue.name}: its dead-letter queue {target} is not in the templates")
            queue.dead = found[target]
    return found


def mapped_function(deployment: Deployment, mapping: Resource) -> Resource:
    aliased = {f"{each['FunctionName']}:{each['Name']}" for each in deployment.all("AWS::Lambda::Alias")}
    name = str(mapping["FunctionName"])
    name = name.rpartition(":")[0] if name in aliased else name
    for function in deployment.all("AWS::Lambda::Function"):
        if name in (function.ref, function.arn):
            return function
    raise Misconfigured(f"{mapping.id}: {name} is no function of the templates")


class Mapping:
    @staticmethod
    def is_of(resource: Resource) -> bool:
        return ":sqs:" in str(resource["EventSourceArn"])

    def __init__(self, deployment: Deployment, resource: Resource) -> None:
        self.queue = resource["EventSourceArn"]
        self.batch = int(resource.get("BatchSize", 10))
        self._partial = resource.get("FunctionResponseTypes", []) == ["ReportBatchItemFailures"]
        queue, function = deployment.at(self.queue), mapped_function(deployment, resource)
        if queue.get("VisibilityTimeout", 30) < function.get("Timeout", 3):
            raise Misconfigured(f"{resource.id}: Lambda refuses a queue with less patience than its function")
        if self.batch > 10 and not resource.get("MaximumBatchingWindowInSeconds"):
            raise Misconfigured(f"{resource.id}: batches of more than 10 need a batching window")
        if "FilterCriteria" in resource.raw or not resource.get("Enabled", True):
            raise Misconfigured(f"{resource.id}: it is disabled, or filters, which is not played here")
        needed = [(f"sqs:{act}", self.queue) for act in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")]
        if refused := iam.refused(iam.statements(deployment, iam.role_of(deployment, function)), needed):
            raise Misconfigured(f"{resource.id}: the role of the function does not allow {refused}")

    def failed(self, batch: Sequence[Message], invocation: Invocation) -> set[str]:
        """The ids of messages that stay in the queue."""
        every = {message.id for message in batch}
        if invocation.error is not None:
            return every
        if not self._partial or invocation.response is None:
            return set()
        try:
            failed = {item["itemIdentifier"] for item in invocation.response.get("batchItemFailures") or []}
        except (AttributeError, KeyError, TypeError):
            return every
        return failed if failed <= every else every
