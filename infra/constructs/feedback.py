"""Feedback: the function that records what callers report."""

from aws_cdk import CfnOutput
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.foundation import Foundation
from infra.constructs.function import Limits
from mats.settings import Settings

TIMEOUT_S = 15
"""A transaction that meets many others is tried again for a few seconds."""


class FeedbackFunction(Construct):
    """Reads receipts and writes outcomes; it reaches neither the index nor a model."""

    def __init__(self, scope: Construct, id: str, *, on: Foundation) -> None:
        super().__init__(scope, id)
        context, tables = on.context, on.tables
        settings = Settings(
            metrics=context.name,
            **context.settings_of("feedback"),
            receipts_table=tables.receipts.table_name,
            outcomes_table=tables.outcomes.table_name,
            tallies_table=tables.tallies.table_name,
        )
        made = on.function(
            self, "Feedback", folder="feedback", settings=settings, limits=Limits(memory_mb=1024, timeout_s=TIMEOUT_S)
        )
        self.function, self.log = made.function, made.log
        tables.receipts.grant(made.role, "dynamodb:GetItem")
        calls = [f"dynamodb:{call}" for call in ("Query", "PutItem", "UpdateItem")]
        made.allow([iam.PolicyStatement(actions=calls, resources=[tables.outcomes.table_arn])])
        tables.tallies.grant(made.role, "dynamodb:UpdateItem")
        CfnOutput(self, "Name", value=made.function.function_name).override_logical_id("FeedbackFunction")
