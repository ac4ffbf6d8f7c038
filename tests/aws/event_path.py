"""The way of a change from a table's stream to a function, played as the synthesized templates configure it.

DynamoDB stream -> event source mapping -> function -> bus -> rule -> SQS -> event source mapping -> function. The
streams are DynamoDB Local's, all else is here. What a template says wrongly raises `Misconfigured`, or nothing arrives:
both fail a suite.
"""

import base64
import json
import random
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from mats.adapters.eventbridge import stream_events
from tests.aws import iam
from tests.aws.deployment import Deployment, Json, Misconfigured, Resource
from tests.aws.patterns import matches
from tests.aws.queues import Clock, Message, Queue, mapped_function, queues_of
from tests.aws.queues import Mapping as QueueMapping
from tests.aws.runtime import Invocation

Event = dict[str, Any]
Carry: TypeAlias = Callable[[Event], tuple[Sequence[Mapping[str, Any]], Mapping[str, Any] | None]]
"""The function of the streams: what it put on the bus, and what it answered. Raises Failed: it ended in an error."""
Deliver = Callable[[Event], Invocation]


class Failed(Exception):
    """An invocation ended in an error."""


class EventPath:
    """All streams, rules, queues and event source mappings of a deployment, moved by hand.

    `client(service)` gives clients for "dynamodb" and "dynamodbstreams" of DynamoDB Local, which has the tables with a
    stream under the names the templates give them (`dynamodb.make_tables`). `carry` is the function of the streams,
    with what it puts on the bus. What is to be tried again waits for the `clock`, which `run` moves.
    """

    def __init__(
        self,
        deployment: Deployment,
        client: Callable[[str], Any],
        *,
        carry: Carry = lambda event: (stream_events("mats", event["Records"]), None),
    ) -> None:
        self._deployment = deployment
        self._random = random.Random(0)
        self._lock = threading.RLock()
        self.clock = Clock()
        self.queues = queues_of(deployment)
        self._carry = carry
        mappings = deployment.all("AWS::Lambda::EventSourceMapping")
        self.streams = [_Stream(self, deployment, each, client) for each in mappings if not QueueMapping.is_of(each)]
        self.rules = [_Rule(deployment, rule) for rule in deployment.all("AWS::Events::Rule")]
        self.mappings = [QueueMapping(deployment, each) for each in mappings if QueueMapping.is_of(each)]
        self.events: list[Event] = []
        """Every event that was put on a bus, whether or not a rule wanted it."""
        self._sent: list[tuple[Queue, str]] = []

    def pump(self) -> int:
        """Carry everything new in the streams to the queues; how many changes the streams had."""
        with self._lock:
            return sum(stream.carry(self._hand_over) for stream in self.streams)

    def _hand_over(self, event: Event) -> Mapping[str, Any] | None:
        entries, response = self._carry(event)
        self.put_events(entries)
        return response

    def put_events(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Put on their buses what a function gave to PutEvents."""
        with self._lock:
            for entry in entries:
                bus = str(entry.get("EventBusName", "default")).rpartition("/")[2]
                self._put(bus, {**entry, "Detail": json.loads(entry["Detail"])})

    def deliver(self, invoke: Deliver) -> int:
        """Hand one batch of each mapping to the function; how many those were. Threads may do it side by side."""
        return sum(self._deliver(mapping, invoke) for mapping in self.mappings)

    def run(self, invoke: Deliver, *, rounds: int = 10_000) -> int:
        """Pump and deliver until only dead-letter queues hold anything; how many messages were handed out.

        Where all wait, time goes on to when the first is tried again.
        """
        delivered = 0
        for _ in range(rounds):
            moved, handed = self.pump(), self.deliver(invoke)
            delivered += handed
            if not moved and not handed:
                waiting = [message.visible for each in self.mappings for message in self.queues[each.queue].messages]
                waiting += [retry.at for stream in self.streams for retry in stream.retries.values()]
                if not waiting:
                    return delivered
                self.clock.move_to(min(waiting))
        raise AssertionError(f"still not idle after {rounds} rounds: {self.waiting()}")

    def waiting(self) -> dict[str, list[Message]]:
        """The messages in each queue, in flight or not; empty queues are left out."""
        with self._lock:
            return {queue.name: [*queue.messages] for queue in self.queues.values() if queue.messages}

    def redrive(self) -> int:
        """Move what is in dead-letter queues back to the queues it came from; how many messages that were."""
        with self._lock:
            moved = 0
            for queue in self.queues.values():
                if queue.dead:
                    moved += len(queue.dead.messages)
                    now = self.clock.now()
                    queue.messages += [Message(m.id, m.body, now, now) for m in queue.dead.messages]
                    queue.dead.messages.clear()
            return moved

    def repeat(self, count: int) -> None:
        """Send so many of the messages there ever were once more, however long they have been dealt with."""
        with self._lock:
            for queue, body in self._random.choices(self._sent, k=count):
                self.enqueue(queue, body)

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
            "time": self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self._deployment.region,
            "resources": list(entry.get("Resources", [])),
            "detail": entry["Detail"],
        }

    def _id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _send(self, queue: Queue, body: str) -> None:
        self._sent.append((queue, body))
        self.enqueue(queue, body)

    def enqueue(self, queue: Queue, body: str) -> None:
        """Put a message into a queue."""
        now = self.clock.now()
        queue.messages.append(Message(self._id(), body, now, now))

    def _deliver(self, mapping: QueueMapping, invoke: Deliver) -> int:
        queue = self.queues[mapping.queue]
        with self._lock:
            batch = queue.receive(mapping.batch, self.clock.now())
        if batch:
            failed = mapping.failed(batch, invoke({"Records": [self._record(queue, message) for message in batch]}))
            with self._lock:
                queue.messages = [each for each in queue.messages if each not in batch or each.id in failed]
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


@dataclass(frozen=True)
class Retry:
    """When a shard goes on, with how many records in the first batch, and how often these were tried again."""

    at: datetime
    size: int
    attempts: int


class _Stream:
    """From the stream of a table to the function that puts its changes on a bus."""

    def __init__(
        self, path: EventPath, deployment: Deployment, resource: Resource, client: Callable[[str], Any]
    ) -> None:
        self._path, self.id = path, resource.id
        source = resource["EventSourceArn"]
        self._require(resource.get("Enabled", True), "it is disabled")
        self._require(resource["StartingPosition"] == "TRIM_HORIZON", "it would miss what was written before it ran")
        self._require("FilterCriteria" not in resource.raw, "it filters, which is not played here")
        arn, _, _ = source.partition("/stream/")
        table = deployment.at(arn)
        self._require("/stream/" in source and "StreamSpecification" in table.raw, f"{source} is not a table's stream")
        function = mapped_function(deployment, resource)
        calls = ("DescribeStream", "GetRecords", "GetShardIterator")
        needed = [(f"dynamodb:{call}", source) for call in calls]
        self._destination = resource.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        if self._destination:
            needed.append(("sqs:SendMessage", self._destination))
        rights = iam.statements(deployment, iam.role_of(deployment, function))
        refused = iam.refused(rights, needed)
        self._require(not refused, f"its role does not allow {refused}")
        if key := table.get("SSESpecification", {}).get("KMSMasterKeyId"):  # a stream is read with the table's key
            via = {"kms:ViaService": f"dynamodb.{deployment.region}.amazonaws.com"}
            self._require(iam.allowed(rights, "kms:Decrypt", key, via), f"its role may not use {key}")
        self._source, self._batch = source, int(resource["BatchSize"])
        self._partial = "ReportBatchItemFailures" in resource.raw.get("FunctionResponseTypes", [])
        self._bisects, self._retries = (
            resource.get("BisectBatchOnFunctionError"),
            resource.get("MaximumRetryAttempts", -1),
        )
        age = resource.get("MaximumRecordAgeInSeconds", -1)
        self._max_age = timedelta(hours=24) if age == -1 else timedelta(seconds=age)
        self._streams = client("dynamodbstreams")
        self._stream = client("dynamodb").describe_table(TableName=table.ref)["Table"]["LatestStreamArn"]
        self._places: dict[str, str] = {}
        """The sequence number of the last record that was handed over, by shard."""
        self._ended: set[str] = set()
        self.retries: dict[str, Retry] = {}

    def carry(self, invoke: Callable[[Event], Mapping[str, Any] | None]) -> int:
        """Hand over what is new in batches, in the order of each shard, parents before children; how many records.

        A batch that the function fails at is bisected, or comes again after a pause in which its shard waits; of a
        partial response, what begins with the record it names. Records that are too old, or were tried too often, go to
        the destination for failures. AWS states no lengths of pauses: here they double from a second to five minutes.
        """
        carried = 0
        for shard in self._shards():
            if shard in self._ended:
                continue
            found, is_closed = self._read(shard)
            while found and not ((retry := self.retries.get(shard)) and retry.at > self._path.clock.now()):
                batch = found[: retry.size if retry else self._batch]
                if done := self._hand_over(shard, batch, invoke):
                    self._places[shard] = _number(batch[done - 1])
                carried, found = carried + done, found[done:]
            if is_closed and not found:
                self._ended.add(shard)
        return carried

    def _hand_over(self, shard: str, batch: Sequence[Json], invoke: Callable[[Event], Mapping[str, Any] | None]) -> int:
        """How many records of a batch are done with."""
        now, retry = self._path.clock.now(), self.retries.pop(shard, None)
        tried, oldest = retry.attempts if retry else 0, now - self._max_age
        if too_old := sum(each["dynamodb"]["ApproximateCreationDateTime"] < oldest for each in batch):
            return self._give_up(batch[:too_old], "RecordAgeExceeded")
        try:
            response = invoke({"Records": [_as_event({**each, "eventSourceARN": self._source}) for each in batch]})
            done = self._accepted(list(map(_number, batch)), response)
        except Failed:
            done = 0
            if self._bisects and len(batch) > 1:
                self.retries[shard] = Retry(now, (len(batch) + 1) // 2, tried)  # a split is no retry
                return 0
        if done < len(batch) and 0 <= self._retries <= tried:
            return done + self._give_up(batch[done:], "RetryAttemptsExhausted")
        if done < len(batch):
            pause = timedelta(seconds=min(2**tried, 300))
            self.retries[shard] = Retry(now + pause, len(batch) - done, tried + 1)
        return done

    def _give_up(self, batch: Sequence[Json], condition: str) -> int:
        """Tell the destination which records these were, as Lambda does: without them."""
        assert self._destination, f"{self.id} has lost {len(batch)} records: {condition}"
        first, last = _number(batch[0]), _number(batch[-1])
        about = {"streamArn": self._source, "batchSize": len(batch)}
        numbers = {"startSequenceNumber": first, "endSequenceNumber": last}
        body = {"requestContext": {"condition": condition}, "DDBStreamBatchInfo": {**about, **numbers}}
        self._path.enqueue(self._path.queues[self._destination], json.dumps(body))
        return len(batch)

    def _accepted(self, numbers: Sequence[str], response: Mapping[str, Any] | None) -> int:
        """How many records of a batch need not come again."""
        failures = (response or {}).get("batchItemFailures", [])
        self._require(not failures or self._partial, "its partial responses are not asked for")
        return min((numbers.index(each["itemIdentifier"]) for each in failures), default=len(numbers))

    def _read(self, shard: str) -> tuple[list[Json], bool]:
        """New records, and whether the shard is closed: an iterator that once met its end may be refused later."""
        begin = {"ShardIteratorType": "TRIM_HORIZON"}
        if shard in self._places:
            begin = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": self._places[shard]}
        place = self._streams.get_shard_iterator(StreamArn=self._stream, ShardId=shard, **begin)["ShardIterator"]
        found: list[Json] = []
        while place:
            page = self._streams.get_records(ShardIterator=place)
            found += page["Records"]
            place = page.get("NextShardIterator")
            if not page["Records"]:
                break
        return found, not place

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


def _number(record: Json) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


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
