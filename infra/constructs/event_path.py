"""The event path to enrichment: stream, Pipe, bus, rule, queue, with a dead-letter queue at every hop."""

import json
from collections.abc import Mapping

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_pipes as pipes
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.log_group import decrypt_tables, log_group
from infra.constructs.nag import accept
from infra.context import Context
from infra.sizes import PIPE_BATCH

SOURCE = "mats.registry"
RESENT = "mats.maintenance"
"""Source of changes and reports that maintenance sends again; the archive does not keep them."""
REJECTED = "mats.enrichment"
"""Source of rejections."""
CHANGED = "CapabilityChanged"
REPORTS = "mats.outcomes"
"""Source of the keys of what callers report; the archive does not keep them."""
REPORTED = "OutcomeReported"
_TRIES = 50
"""With the backoff of a Pipe, long enough for a bus that is unavailable for some hours."""


class EventPath(Construct):
    """From tables to a queue; events carry keys, never content."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        context: Context,
        tables: Mapping[str, dynamodb.ITable],
        visibility: Duration,
        max_receives: int,
    ) -> None:
        """Connect the streams of these tables to the queue.

        Args:
            scope: The stack.
            id: Of this construct.
            context: Prefix of the names, and the retention of logs.
            tables: Tables with a stream, by their name in events.
            visibility: Visibility timeout of the queue.
            max_receives: Receives of a message before it becomes a dead letter.
        """
        super().__init__(scope, id)
        self._context = context
        self.archive_name = f"{context.name}-changes"
        self.bus = events.EventBus(self, "Bus", event_bus_name=context.name)
        self.bus.archive(
            "Archive",
            archive_name=self.archive_name,
            event_pattern=events.EventPattern(source=[SOURCE]),
            retention=Duration.days(30),
        )
        self.dead_letter_queues = {"Rule": self._dead("Rule")}
        self.queue = self._queue(f"{context.name}-changes", visibility, max_receives)
        self.rule = events.Rule(
            self,
            "Changed",
            event_bus=self.bus,
            description="Changed capabilities go to enrichment",
            event_pattern=events.EventPattern(source=[SOURCE, RESENT], detail_type=[CHANGED]),
            targets=[targets.SqsQueue(self.queue, dead_letter_queue=self.dead_letter_queues["Rule"])],
        )
        self.pipes = {name: self._pipe(name, table) for name, table in tables.items()}

    def allow_events(self, role: iam.IRole, *sources: str) -> None:
        """Give a role the right to put events on the bus, of these sources only: no stream's, no other function's."""
        of_sources = {"StringEquals": {"events:source": list(sources)}}
        role.add_to_principal_policy(
            iam.PolicyStatement(actions=["events:PutEvents"], resources=[self.bus.event_bus_arn], conditions=of_sources)
        )

    def add_reports(self, outcomes: dynamodb.ITable, *, visibility: Duration, max_receives: int) -> sqs.Queue:
        """The queue of what is written into the table of outcomes, and of removed registrations."""
        queue = self._queue(f"{self._context.name}-reports", visibility, max_receives, id="Reports", hop="Learning")
        self.dead_letter_queues["ReportRule"] = self._dead("ReportRule")
        removals = {"table": ["Registry"], "change": ["REMOVE"]}
        for id, description, pattern in (
            ("Reported", "Reported outcomes", events.EventPattern(source=[REPORTS, RESENT], detail_type=[REPORTED])),
            ("Removed", "Removals", events.EventPattern(source=[SOURCE], detail_type=[CHANGED], detail=removals)),
        ):
            events.Rule(
                self,
                id,
                event_bus=self.bus,
                description=f"{description} go to learning",
                event_pattern=pattern,
                targets=[targets.SqsQueue(queue, dead_letter_queue=self.dead_letter_queues["ReportRule"])],
            )
        self.pipes["Outcomes"] = self._pipe("Outcomes", outcomes, source=REPORTS, detail_type=REPORTED)
        return queue

    def _queue(
        self, name: str, visibility: Duration, max_receives: int, *, id: str = "Changes", hop: str = "Enrichment"
    ) -> sqs.Queue:
        by_name = f"arn:{Aws.PARTITION}:sqs:{Aws.REGION}:{Aws.ACCOUNT_ID}:{name}"
        prefix = "" if id == "Changes" else id
        given_up = self._dead(hop, of=sqs.Queue.from_queue_arn(self, f"{prefix}QueueByName", by_name))
        self.dead_letter_queues[hop] = given_up
        return sqs.Queue(
            self,
            id,
            queue_name=name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(7),
            visibility_timeout=visibility,
            dead_letter_queue=sqs.DeadLetterQueue(queue=given_up, max_receive_count=max_receives),
        )

    def _pipe(
        self, name: str, table: dynamodb.ITable, *, source: str = SOURCE, detail_type: str = CHANGED
    ) -> pipes.CfnPipe:
        dead = self.dead_letter_queues[name] = self._dead(name)
        stream = table.table_stream_arn
        assert stream is not None  # noqa: S101 - only tables with a stream are given
        pipe_name = f"{self._context.name}-{name.lower()}"
        log = log_group(self, f"{name}PipeLog", context=self._context, vended=f"pipes/{pipe_name}")
        return pipes.CfnPipe(
            self,
            f"{name}Pipe",
            name=pipe_name,
            role_arn=self._pipe_role(name, pipe_name, stream, dead).role_arn,
            source=stream,
            source_parameters=pipes.CfnPipe.PipeSourceParametersProperty(
                dynamo_db_stream_parameters=pipes.CfnPipe.PipeSourceDynamoDBStreamParametersProperty(
                    starting_position="TRIM_HORIZON",
                    batch_size=PIPE_BATCH,
                    maximum_retry_attempts=_TRIES,
                    maximum_record_age_in_seconds=int(Duration.hours(20).to_seconds()),
                    on_partial_batch_item_failure="AUTOMATIC_BISECT",
                    dead_letter_config=pipes.CfnPipe.DeadLetterConfigProperty(arn=dead.queue_arn),
                )
            ),
            target=self.bus.event_bus_arn,
            target_parameters=pipes.CfnPipe.PipeTargetParametersProperty(
                event_bridge_event_bus_parameters=pipes.CfnPipe.PipeTargetEventBridgeEventBusParametersProperty(
                    source=source, detail_type=detail_type
                ),
                input_template=_detail(name),
            ),
            desired_state="RUNNING",
            log_configuration=pipes.CfnPipe.PipeLogConfigurationProperty(
                level="ERROR",
                cloudwatch_logs_log_destination=pipes.CfnPipe.CloudwatchLogsLogDestinationProperty(
                    log_group_arn=log.log_group_arn
                ),
            ),
        )

    def _pipe_role(self, name: str, pipe: str, stream: str, dead: sqs.IQueue) -> iam.Role:
        """Its grants are in the role, so that they are there before the Pipe first looks at its stream."""
        stack = Stack.of(self)
        confined = {
            "StringEquals": {"aws:SourceAccount": stack.account},
            "ArnEquals": {"aws:SourceArn": f"arn:{Aws.PARTITION}:pipes:{Aws.REGION}:{Aws.ACCOUNT_ID}:pipe/{pipe}"},
        }
        reads = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"]
        allowed = [
            iam.PolicyStatement(actions=reads, resources=[stream]),
            iam.PolicyStatement(actions=["events:PutEvents"], resources=[self.bus.event_bus_arn]),
            iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[dead.queue_arn]),
            *decrypt_tables(self._context),
        ]
        return iam.Role(
            self,
            f"{name}PipeRole",
            assumed_by=iam.ServicePrincipal("pipes.amazonaws.com", conditions=confined),
            inline_policies={"carry": iam.PolicyDocument(statements=allowed)},
        )

    def _dead(self, hop: str, *, of: sqs.IQueue | None = None) -> sqs.Queue:
        """The dead-letter queue of a hop; SQS itself may only move messages here from queue `of`."""
        allowed = sqs.RedrivePermission.BY_QUEUE if of else sqs.RedrivePermission.DENY_ALL
        queue = sqs.Queue(
            self,
            f"{hop}Dead",
            queue_name=f"{self._context.name}-{hop.lower()}-dead",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
            redrive_allow_policy=sqs.RedriveAllowPolicy(redrive_permission=allowed, source_queues=[of] if of else None),
        )
        accept(queue, SQS3="It is a dead-letter queue; an alarm watches it")
        return queue


def _detail(table: str) -> str:
    """The event's detail. The Pipe puts the keys in as JSON, so that no name can break out of its quotes."""
    return f'{{"table": {json.dumps(table)}, "change": <$.eventName>, "keys": <$.dynamodb.Keys>}}'
