"""The functions that consume the two queues: changes become profiles, reported outcomes become the memory."""

from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.event_path import REJECTED, RESENT, EventPath
from infra.constructs.function import DEFAULTS, Foundation, Function, Values
from infra.constructs.shared import allow
from infra.sizes import ENRICHMENT_TIMEOUT_S, LEARNING_TIMEOUT_S
from mats.settings import ENRICHED_AT_ONCE


class EnrichmentFunction(Construct):
    """The function that turns changes into profiles in DynamoDB and the index, with its rights."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        on: Foundation,
        path: EventPath,
        settings: Values = DEFAULTS,
        at_once: int = 2,  # Batches
    ) -> None:
        super().__init__(scope, id)
        models, tables = on.models, on.tables
        values = on.environment(
            # outcomes for operators, whose commands take these variables: docs/runbook.md
            **tables.settings("registry", "trust", "profiles", "outcomes"),
            event_bus=path.bus.event_bus_name,
            **settings,
        )
        made = Function(
            self,
            "Enrichment",
            on=on,
            folder="enrichment",
            environment=values,
            memory_mb=1024,
            timeout_s=ENRICHMENT_TIMEOUT_S,
        )
        self.function, self.log = made.function, made.log
        tables.registry.grant(made.role, "dynamodb:BatchGetItem", "dynamodb:Scan")  # the ids of a namespace
        tables.trust.grant(made.role, "dynamodb:BatchGetItem")
        tables.profiles.grant(
            made.role, *(f"dynamodb:{call}" for call in ("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem"))
        )
        made.allow([_keep_from_indices(tables.profiles.table_arn)])
        path.grant_put_events(made.role, REJECTED, RESENT)
        on.domain.grant(made.role, "enrichment")
        made.allow([*models.statements(models.chosen.writer), *models.encoder_statements()])
        self.alias = made.live(self)
        _consume(self.alias, path.queue, batch=ENRICHED_AT_ONCE, concurrency=at_once)
        CfnOutput(self, "Name", value=made.function.function_name).override_logical_id("EnrichmentFunction")


class LearningFunction(Construct):
    """The function that learns from reports, and forgets those of removed capabilities; receipts have the vectors."""

    def __init__(self, scope: Construct, id: str, *, on: Foundation, path: EventPath) -> None:
        super().__init__(scope, id)
        tables = on.tables
        self.queue = path.add_reports(tables.outcomes)
        # trust and profiles only because settings take all three or none
        values = on.environment(**tables.settings("registry", "trust", "profiles", "outcomes"))
        made = Function(
            self, "Learner", on=on, folder="learning", environment=values, memory_mb=512, timeout_s=LEARNING_TIMEOUT_S
        )
        self.function = made.function
        tables.registry.grant(made.role, "dynamodb:BatchGetItem")
        learned = tables.outcomes.table_arn
        made.allow(
            [allow("dynamodb:Query", on=[learned, tables.outcomes_by_id]), allow("dynamodb:DeleteItem", on=learned)]
        )
        on.domain.grant(made.role, "learning")
        _consume(made.function, self.queue, batch=50, concurrency=2)
        CfnOutput(self, "Name", value=made.function.function_name).override_logical_id("LearningFunction")


def _consume(function: lambda_.IFunction, queue: sqs.IQueue, *, batch: int, concurrency: int) -> None:
    function.add_event_source(
        sources.SqsEventSource(
            queue,
            batch_size=batch,
            max_batching_window=Duration.seconds(1),
            max_concurrency=concurrency,
            report_batch_item_failures=True,
        )
    )


def _keep_from_indices(profiles: str) -> iam.PolicyStatement:
    """No write of the row of Profiles that says which indices are written to: it is maintenance's and operators'."""
    row = {"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": ["~system"]}}
    return allow("dynamodb:PutItem", "dynamodb:UpdateItem", on=profiles, where=row, effect=iam.Effect.DENY)
