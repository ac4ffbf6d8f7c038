"""Learning: the function that turns reported outcomes into the memory, and forgets those of removed capabilities."""

from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda_event_sources as sources
from constructs import Construct

from infra.constructs.event_path import EventPath
from infra.constructs.foundation import Foundation
from infra.constructs.function import Limits

_TIMEOUT_S = 60
_VISIBILITY = Duration.seconds(6 * _TIMEOUT_S)
_MAX_RECEIVES = 12
_BATCH = 50


class LearningFunction(Construct):
    """The function that consumes the queue of reports. It calls no model: receipts have vectors."""

    def __init__(self, scope: Construct, id: str, *, on: Foundation, path: EventPath) -> None:
        super().__init__(scope, id)
        tables = on.tables
        self.queue = path.add_reports(tables.outcomes, visibility=_VISIBILITY, max_receives=_MAX_RECEIVES)
        settings = on.settings(
            # trust and profiles only because settings take all three or none
            **tables.settings("registry", "trust", "profiles", "outcomes", "tallies")
        )
        made = on.function(
            self, "Learner", folder="learning", settings=settings, limits=Limits(memory_mb=512, timeout_s=_TIMEOUT_S)
        )
        self.function, self.log = made.function, made.log
        tables.registry.grant(made.role, "dynamodb:BatchGetItem")
        learned = [tables.outcomes.table_arn, tables.tallies.table_arn]
        made.allow([
            iam.PolicyStatement(actions=["dynamodb:Query"], resources=[*learned, tables.outcomes_by_id]),
            iam.PolicyStatement(actions=["dynamodb:DeleteItem"], resources=learned),
        ])  # fmt: skip
        on.domain.grant(made.role, "learning")
        made.function.add_event_source(
            sources.SqsEventSource(
                self.queue,
                batch_size=_BATCH,
                max_batching_window=Duration.seconds(1),
                max_concurrency=2,
                report_batch_item_failures=True,
            )
        )
        CfnOutput(self, "Name", value=made.function.function_name).override_logical_id("LearningFunction")
