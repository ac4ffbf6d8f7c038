"""The way of a change from a table's stream to a function, played as the synthesized templates configure it.

DynamoDB stream -> Pipe -> bus -> rule -> SQS -> event source mapping -> function. The streams are those of DynamoDB Local;
all else is here. What a template says wrongly raises `Misconfigured`, or nothing arrives: both fail a suite.
"""

import base64
import json
import random
import re
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.servers import iam
from tests.servers.deployment import Deployment, Json, Resource, Unresolvable
from tests.servers.patterns import matches
from tests.servers.runtime import Invocation

Event = dict[str, Any]
Deliver = Callable[[Event], Invocation]


class Misconfigured(Exception):
    """The template would not work in an account either."""


@dataclass
class Message:
    """What a queue holds; `received` is how often it was handed out."""

    id: str
    body: str
    sent: datetime
    received: int = 0

    @property
    def content(self) -> Any:
        """Its body, read as JSON."""
        return json.loads(self.body)


@dataclass
class Queue:
    """A queue and, if it has one, where messages go that were received too often."""

    name: str
    arn: str
    limit: int | None = None
    dead: "Queue | None" = None
    messages: list[Message] = field(default_factory=list)
    in_flight: list[Message] = field(default_factory=list)


@dataclass(frozen=True)
class Chaos:
    """What at-least-once and unordered mean: each message may come twice, and in any order."""

    seed: int
    duplicates: float = 0.2
    """How likely it is that an event becomes two messages."""
    shuffle: bool = True


class EventPath:
    """All Pipes, rules, queues and event source mappings of a deployment, moved by hand.

    `client(service)` gives clients for "dynamodb" and "dynamodbstreams" of DynamoDB Local, where the tables with a stream
    are there under the names the templates give them.
    """

    def __init__(self, deployment: Deployment, client: Callable[[str], Any], *, chaos: Chaos | None = None) -> None:
        self._deployment, self._chaos = deployment, chaos
        self._random = random.Random(chaos.seed if chaos else 0)
        self._lock = threading.RLock()
        self.queues = _queues(deployment)
        self.pipes = [_Pipe(deployment, pipe, client) for pipe in deployment.all("AWS::Pipes::Pipe")]
        self.rules = [_Rule(deployment, rule) for rule in deployment.all("AWS::Events::Rule")]
        self.mappings = [_Mapping(deployment, each) for each in deployment.all("AWS::Lambda::EventSourceMapping")]
        self.events: list[Event] = []
        """Every event that was put on a bus, and which no rule may have wanted."""

    def pump(self) -> int:
        """Carry everything new in the streams to the queues; how many changes the streams had."""
        with self._lock:
            records = 0
            for pipe in self.pipes:
                for entry, count in pipe.entries():
                    records += count
                    if entry:
                        self._put(pipe.bus, entry)
            return records

    def put_events(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Put on their buses what a function gave to PutEvents."""
        with self._lock:
            for entry in entries:
                bus = str(entry.get("EventBusName", "default")).rpartition("/")[2]
                self._put(bus, {**entry, "Detail": json.loads(entry["Detail"])})

    def deliver(self, invoke: Deliver) -> int:
        """Hand one batch of each mapping to the function; how many messages that were. From as many threads as wanted."""
        return sum(self._deliver(mapping, invoke) for mapping in self.mappings)

    def run(self, invoke: Deliver, *, rounds: int = 10_000) -> int:
        """Pump and deliver until nothing is left but what is in dead-letter queues; how many messages were handed out."""
        delivered = 0
        for _ in range(rounds):
            moved, handed = self.pump(), self.deliver(invoke)
            delivered += handed
            if not moved and not handed:
                return delivered
        raise AssertionError(f"still not idle after {rounds} rounds: {self.waiting()}")

    def waiting(self) -> dict[str, list[Message]]:
        """What is in each queue, in flight or not; empty queues are left out."""
        with self._lock:
            contents = {queue.name: [*queue.messages, *queue.in_flight] for queue in self.queues.values()}
            return {name: messages for name, messages in contents.items() if messages}

    def redrive(self) -> int:
        """Move what is in dead-letter queues back to the queues it came from; how many messages that were."""
        with self._lock:
            moved = 0
            for queue in self.queues.values():
                if queue.dead:
                    moved += len(queue.dead.messages)
                    queue.messages += [Message(m.id, m.body, m.sent) for m in queue.dead.messages]
                    queue.dead.messages.clear()
            return moved

    def _put(self, bus: str, entry: Mapping[str, Any]) -> None:
        event = self._event(entry)
        self.events.append(event)
        for rule in self.rules:
            if rule.bus == bus and matches(rule.pattern, event):
                for arn in rule.targets:
                    self._send(self.queues[arn], json.dumps(event))

    def _event(self, entry: Mapping[str, Any]) -> Event:
        return {
            "version": "0",
            "id": self._id(),
            "detail-type": entry["DetailType"],
            "source": entry["Source"],
            "account": self._deployment.account,
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self._deployment.region,
            "resources": list(entry.get("Resources", [])),
            "detail": entry["Detail"],
        }

    def _id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _send(self, queue: Queue, body: str) -> None:
        twice = self._chaos is not None and self._random.random() < self._chaos.duplicates
        queue.messages += [Message(self._id(), body, datetime.now(UTC)) for _ in range(2 if twice else 1)]

    def _deliver(self, mapping: "_Mapping", invoke: Deliver) -> int:
        queue = self.queues[mapping.queue]
        with self._lock:
            if self._chaos and self._chaos.shuffle:
                self._random.shuffle(queue.messages)
            batch, queue.messages = queue.messages[: mapping.batch], queue.messages[mapping.batch :]
            queue.in_flight += batch
            for message in batch:
                message.received += 1
        if not batch:
            return 0
        failed = {message.id for message in batch}  # should delivering itself fail
        try:
            failed = mapping.failed(batch, invoke({"Records": [self._record(queue, message) for message in batch]}))
        finally:
            with self._lock:
                for message in batch:
                    queue.in_flight.remove(message)
                    if message.id in failed:
                        _again(queue, message)
        return len(batch)

    def _record(self, queue: Queue, message: Message) -> Event:
        sent = str(int(message.sent.timestamp() * 1000))
        return {
            "messageId": message.id,
            "receiptHandle": f"{message.id}-{message.received}",
            "body": message.body,
            "attributes": {
                "ApproximateReceiveCount": str(message.received),
                "SentTimestamp": sent,
                "SenderId": "AIDAEXAMPLE",
                "ApproximateFirstReceiveTimestamp": sent,
            },
            "messageAttributes": {},
            "md5OfBody": "0" * 32,
            "eventSource": "aws:sqs",
            "eventSourceARN": queue.arn,
            "awsRegion": self._deployment.region,
        }


def _again(queue: Queue, message: Message) -> None:
    """Back into the queue, or to its dead-letter queue when it was received too often."""
    dead = queue.dead if queue.limit is not None and message.received >= queue.limit else None
    (dead or queue).messages.append(message)


def _queues(deployment: Deployment) -> dict[str, Queue]:
    found = {queue.arn: Queue(queue.ref.rpartition("/")[2], queue.arn) for queue in deployment.all("AWS::SQS::Queue")}
    for resource in deployment.all("AWS::SQS::Queue"):
        redrive = resource.get("RedrivePolicy")
        if redrive:
            queue = found[resource.arn]
            queue.limit, target = int(redrive["maxReceiveCount"]), redrive["deadLetterTargetArn"]
            if target not in found:
                raise Misconfigured(f"{queue.name}: its dead-letter queue {target} is not in the templates")
            queue.dead = found[target]
    return found


class _Pipe:
    """From the stream of a table to a bus."""

    def __init__(self, deployment: Deployment, resource: Resource, client: Callable[[str], Any]) -> None:
        self.id = resource.id
        source, parameters, target = resource["Source"], resource["SourceParameters"], resource["TargetParameters"]
        streaming = parameters["DynamoDBStreamParameters"]
        self._require(resource.get("DesiredState", "RUNNING") == "RUNNING", "it is not running")
        self._require(streaming["StartingPosition"] == "TRIM_HORIZON", "it would miss what was written before it ran")
        self._require("Enrichment" not in resource.raw, "it has an enrichment, which is not played here")
        arn, _, _ = source.partition("/stream/")
        table = deployment.at(arn)
        self._require("/stream/" in source and "StreamSpecification" in table.raw, f"{source} is not a table's stream")
        self._filters = [
            json.loads(each["Pattern"]) for each in parameters.get("FilterCriteria", {}).get("Filters", [])
        ]
        self.bus = _bus(deployment, resource["Target"])
        envelope = target["EventBridgeEventBusParameters"]
        self._require(set(envelope) == {"Source", "DetailType"}, f"its envelope is {envelope}")
        self._envelope = {"Source": envelope["Source"], "DetailType": envelope["DetailType"]}
        self._template = target["InputTemplate"]
        self._source = source
        self._reserved = {"aws.pipes.pipe-arn": resource.arn, "aws.pipes.pipe-name": resource.ref,
                          "aws.pipes.source-arn": source, "aws.pipes.target-arn": resource["Target"]}  # fmt: skip
        needed = [("dynamodb:DescribeStream", source), ("dynamodb:GetRecords", source)]
        needed += [("dynamodb:GetShardIterator", source), ("events:PutEvents", resource["Target"])]
        if dead := streaming.get("DeadLetterConfig"):
            needed.append(("sqs:SendMessage", dead["Arn"]))
        refused = iam.refused(iam.statements(deployment, iam.role_of(deployment, resource)), needed)
        self._require(not refused, f"its role does not allow {refused}")
        self._streams = client("dynamodbstreams")
        self._stream = client("dynamodb").describe_table(TableName=table.ref)["Table"]["LatestStreamArn"]
        self._places: dict[str, str | None] = {}

    def entries(self) -> list[tuple[Json | None, int]]:
        """For every change since the last call: the entry for the bus, or None where the filter drops it; and 1."""
        return [(self._entry(record), 1) for record in self._records()]

    def _entry(self, record: Json) -> Json | None:
        change = _as_event({**record, "eventSourceARN": self._source})
        if self._filters and not any([matches(pattern, change) for pattern in self._filters]):  # noqa: C419  all are read
            return None
        detail = rendered(self._template, change, self._reserved)
        self._require(isinstance(detail, dict), f"the detail of an event must be an object, not {detail!r}")
        return {**self._envelope, "Detail": detail, "Resources": []}

    def _records(self) -> list[Json]:
        """What is new, in the order of each shard; parents before their children."""
        found: list[Json] = []
        for shard in self._shards():
            if shard not in self._places:
                first = self._streams.get_shard_iterator(
                    StreamArn=self._stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
                )
                self._places[shard] = first["ShardIterator"]
            while place := self._places[shard]:
                page = self._streams.get_records(ShardIterator=place)
                self._places[shard] = page.get("NextShardIterator")
                found += page["Records"]
                if not page["Records"]:
                    break
        return found

    def _shards(self) -> list[str]:
        shards: list[Json] = []
        start: dict[str, str] = {}
        while True:
            page = self._streams.describe_stream(StreamArn=self._stream, **start)["StreamDescription"]
            shards += page["Shards"]
            if "LastEvaluatedShardId" not in page:
                return [shard["ShardId"] for shard in shards]
            start = {"ExclusiveStartShardId": page["LastEvaluatedShardId"]}

    def _require(self, holds: bool, complaint: str) -> None:
        if not holds:
            raise Misconfigured(f"{self.id}: {complaint}")


class _Rule:
    """From a bus to queues."""

    def __init__(self, deployment: Deployment, resource: Resource) -> None:
        self.pattern = resource.get("EventPattern") or {"source": ["no event: it runs on a schedule"]}
        enabled = resource.get("State", "ENABLED") == "ENABLED"
        bus = str(resource.get("EventBusName", "default"))
        self.bus = bus.rpartition("/")[2] if enabled else ""
        self.targets: list[str] = []
        for target in resource.get("Targets", []):
            if ":sqs:" not in str(target["Arn"]):
                continue
            extras = set(target) - {"Arn", "Id", "DeadLetterConfig", "RetryPolicy"}
            if extras:
                raise Misconfigured(f"{resource.id}: {extras} of a target are not played here")
            queues = [target["Arn"]]
            if dead := target.get("DeadLetterConfig"):
                queues.append(dead["Arn"])
            for queue in queues:
                _check_policy(deployment, queue, resource)
            self.targets.append(target["Arn"])


class _Mapping:
    """From a queue to a function."""

    def __init__(self, deployment: Deployment, resource: Resource) -> None:
        self.queue = resource["EventSourceArn"]
        self.batch = int(resource.get("BatchSize", 10))
        self._partial = resource.get("FunctionResponseTypes", []) == ["ReportBatchItemFailures"]
        queue, name = deployment.at(self.queue), str(resource["FunctionName"])
        function = next(
            (each for each in deployment.all("AWS::Lambda::Function") if name in (each.ref, each.arn)), None
        )
        if function is None:
            raise Misconfigured(f"{resource.id}: {name} is no function of the templates")
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


def _bus(deployment: Deployment, arn: str) -> str:
    resource = deployment.at(arn)
    if resource.type != "AWS::Events::EventBus":
        raise Misconfigured(f"{arn} is no event bus")
    return resource.ref


def _check_policy(deployment: Deployment, queue: str, rule: Resource) -> None:
    """EventBridge may send a message to the queue only if the queue's own policy says so."""
    url = deployment.at(queue).ref
    for policy in deployment.all("AWS::SQS::QueuePolicy"):
        if url in policy["Queues"]:
            statements = [
                each
                for each in policy["PolicyDocument"]["Statement"]
                if each["Effect"] == "Allow" and each["Principal"] == {"Service": "events.amazonaws.com"}
            ]
            if iam.allowed(statements, "sqs:SendMessage", queue, {"aws:SourceArn": rule.arn}):
                return
    raise Misconfigured(f"{rule.id}: EventBridge may not send to {queue}")


_PLACEHOLDER = re.compile(r"<([^<>\s]*)>")
_STEP = re.compile(r"\.([A-Za-z0-9_/-]+)|\[(\d+)\]")


def rendered(template: str, event: Json, reserved: Mapping[str, str] | None = None) -> Any:
    """What a Pipe makes of an event: `<$.path>` outside of quotes becomes JSON, inside of quotes the text of a scalar.

    Raises:
        Misconfigured: a path that the event does not have, an unknown variable, or what comes out is no JSON.
    """

    def value(found: re.Match[str]) -> str:
        name, quoted = found[1], _within_quotes(template[: found.start()])
        if name in (reserved or {}):
            content: Any = (reserved or {})[name]
        elif name.startswith("$"):
            content = _at(event, name)
        else:
            raise Misconfigured(f"<{name}> is no variable of a Pipe")
        if not quoted:
            return json.dumps(content)
        if isinstance(content, dict | list):
            raise Misconfigured(f"<{name}> is an object or an array and must not stand in quotes")
        return json.dumps(content if isinstance(content, str) else json.dumps(content))[1:-1]

    text = _PLACEHOLDER.sub(value, template)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Misconfigured(f"no JSON: {text!r}") from error


def _within_quotes(before: str) -> bool:
    return len(re.findall(r'(?<!\\)"', before)) % 2 == 1


def _at(event: Any, path: str) -> Any:
    rest, here = path[1:], event
    while rest:
        step = _STEP.match(rest)
        if not step:
            raise Misconfigured(f"{path}: not a path that Pipes take, or one that is not played here")
        try:
            here = here[step[1]] if step[1] else here[int(step[2])]
        except (KeyError, IndexError, TypeError):
            raise Misconfigured(f"{path}: the event has no such thing: {json.dumps(event)[:500]}") from None
        rest = rest[step.end() :]
    return here


def _as_event(value: Any) -> Any:
    """A record as the service hands it on: times are seconds, bytes are base64."""
    match value:
        case dict():
            return {key: _as_event(each) for key, each in value.items()}
        case list():
            return [_as_event(each) for each in value]
        case datetime():
            return int(value.timestamp())
        case bytes():
            return base64.b64encode(value).decode()
    return value


__all__ = ["Chaos", "Deliver", "EventPath", "Message", "Misconfigured", "Queue", "Unresolvable", "rendered"]
