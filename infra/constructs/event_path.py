"""The event path to enrichment: stream, function, bus, rule, queue, with a dead-letter queue at every hop."""

from aws_cdk import Aws, CfnOutput, Duration
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.function import Foundation, Function
from infra.constructs.nag import accept
from infra.constructs.shared import allow
from infra.sizes import LEARNING_TIMEOUT_S, MAX_RECEIVES, VISIBILITY_S
from mats.settings import Settings

SOURCE = "mats.registry"
RESENT = "mats.maintenance"
"""Source of changes and reports that maintenance sends again; the archive does not keep them."""
REJECTED = "mats.enrichment"  # Source of rejections
CHANGED = "CapabilityChanged"
REPORTS = "mats.outcomes"  # Source of the keys of what callers report; the archive does not keep them
REPORTED = "OutcomeReported"
_BATCH = 100


class EventPath(Construct):
    """From tables to a queue; events carry keys, never content."""

    def __init__(self, scope: Construct, id: str, *, on: Foundation) -> None:
        """Connect the streams of Registry and Trust to the queue."""
        super().__init__(scope, id)
        name = self._name = on.shared.name
        self.archive_name = f"{name}-changes"
        self.bus = events.EventBus(self, "Bus", event_bus_name=name)
        self.bus.archive(
            "Archive",
            archive_name=self.archive_name,
            event_pattern=events.EventPattern(source=[SOURCE]),
            retention=Duration.days(30),
        )
        self.dead_letter_queues = {"Rule": self._dead("Rule")}
        self.queue = self._queue(f"{name}-changes", VISIBILITY_S)
        changed = events.EventPattern(source=[SOURCE, RESENT], detail_type=[CHANGED])
        self._route("Changed", "Changed capabilities go to enrichment", changed, self.queue, "Rule")
        environment = Settings(event_bus=name).to_env()
        made = Function(self, "Streams", on=on, folder="streams", environment=environment, memory_mb=256, timeout_s=60)
        self.function = made.function
        self.grant_put_events(made.role, SOURCE, REPORTS)
        self._follow("Registry", on.tables.registry)
        self._follow("Trust", on.tables.trust)
        CfnOutput(self, "Name", value=made.function.function_name).override_logical_id("StreamsFunction")

    def grant_put_events(self, role: iam.IRole, *sources: str) -> None:
        """Give a role the right to put events on the bus, of these sources only: no stream's, no other function's."""
        of_sources = {"StringEquals": {"events:source": list(sources)}}
        role.add_to_principal_policy(allow("events:PutEvents", on=self.bus.event_bus_arn, where=of_sources))

    def add_reports(self, outcomes: dynamodb.ITable) -> sqs.Queue:
        """The queue of what is written into the table of outcomes, and of removed registrations."""
        queue = self._queue(f"{self._name}-reports", 6 * LEARNING_TIMEOUT_S, id="Reports", hop="Learning")
        self.dead_letter_queues["ReportRule"] = self._dead("ReportRule")
        reported = events.EventPattern(source=[REPORTS, RESENT], detail_type=[REPORTED])
        self._route("Reported", "Reported outcomes go to learning", reported, queue, "ReportRule")
        removals = {"table": ["Registry"], "change": ["REMOVE"]}
        removed = events.EventPattern(source=[SOURCE], detail_type=[CHANGED], detail=removals)
        self._route("Removed", "Removals go to learning", removed, queue, "ReportRule")
        self._follow("Outcomes", outcomes)
        return queue

    def _route(self, id: str, description: str, pattern: events.EventPattern, to: sqs.Queue, hop: str) -> None:
        """Send events of this pattern to a queue; `hop` names that of those which it refuses."""
        target = targets.SqsQueue(to, dead_letter_queue=self.dead_letter_queues[hop])
        events.Rule(self, id, event_bus=self.bus, description=description, event_pattern=pattern, targets=[target])

    def _queue(self, name: str, visibility_s: int, *, id: str = "Changes", hop: str = "Enrichment") -> sqs.Queue:
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
            visibility_timeout=Duration.seconds(visibility_s),
            dead_letter_queue=sqs.DeadLetterQueue(queue=given_up, max_receive_count=MAX_RECEIVES),
        )

    def _follow(self, name: str, table: dynamodb.ITable) -> None:
        dead = self.dead_letter_queues[name] = self._dead(name)
        self.function.add_event_source(
            sources.DynamoEventSource(
                table,
                starting_position=lambda_.StartingPosition.TRIM_HORIZON,
                batch_size=_BATCH,
                bisect_batch_on_error=True,
                report_batch_item_failures=True,
                # however often it is tried until then: a record without content is never at fault
                max_record_age=Duration.hours(20),
                on_failure=sources.SqsDlq(dead),
            )
        )

    def _dead(self, hop: str, *, of: sqs.IQueue | None = None) -> sqs.Queue:
        """The dead-letter queue of a hop; SQS itself may only move messages here from queue `of`."""
        allowed = sqs.RedrivePermission.BY_QUEUE if of else sqs.RedrivePermission.DENY_ALL
        queue = sqs.Queue(
            self,
            f"{hop}Dead",
            queue_name=f"{self._name}-{hop.lower()}-dead",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
            redrive_allow_policy=sqs.RedriveAllowPolicy(redrive_permission=allowed, source_queues=[of] if of else None),
        )
        accept(queue, SQS3="It is a dead-letter queue; an alarm watches it")
        return queue
