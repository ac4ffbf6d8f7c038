"""Enrichment: the function that turns queued changes into profiles in DynamoDB and OpenSearch."""

from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda_event_sources as sources
from constructs import Construct

from infra.constructs.event_path import REJECTED, RESENT, EventPath
from infra.constructs.foundation import Foundation
from infra.constructs.function import Limits
from infra.sizes import ENRICHED_AT_ONCE, ENRICHMENT_TIMEOUT_S, VISIBILITY_S

VISIBILITY = Duration.seconds(VISIBILITY_S)


class EnrichmentFunction(Construct):
    """The function that consumes the queue, with its rights."""

    def __init__(self, scope: Construct, id: str, *, on: Foundation, path: EventPath) -> None:
        super().__init__(scope, id)
        context, models, tables = on.context, on.models, on.tables
        settings = on.settings(
            registry_table=tables.registry.table_name,
            trust_table=tables.trust.table_name,
            profiles_table=tables.profiles.table_name,
            switches_table=tables.switches.table_name,
            outcomes_table=tables.outcomes.table_name,  # these two for `mats erase`, which reads its settings here
            tallies_table=tables.tallies.table_name,
            event_bus=path.bus.event_bus_name,
            writer_calls=ENRICHED_AT_ONCE,
            **context.settings_of("enrichment"),
        )
        made = on.function(
            self,
            "Enrichment",
            folder="enrichment",
            settings=settings,
            limits=Limits(memory_mb=1024, timeout_s=ENRICHMENT_TIMEOUT_S),
        )
        self.function, self.log = made.function, made.log
        tables.registry.grant(made.role, "dynamodb:BatchGetItem", "dynamodb:Scan")  # the ids of a namespace
        tables.trust.grant(made.role, "dynamodb:BatchGetItem")
        tables.profiles.grant(
            made.role, *(f"dynamodb:{call}" for call in ("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem"))
        )
        made.allow([_keep_from_indices(tables.profiles.table_arn)])
        tables.switches.grant(made.role, "dynamodb:GetItem")
        path.allow_events(made.role, REJECTED, RESENT)
        on.domain.grant(made.role, "enrichment")
        made.allow([*models.writer_statements(), *models.encoder_statements()])
        made.function.add_event_source(
            sources.SqsEventSource(
                path.queue,
                batch_size=ENRICHED_AT_ONCE,
                max_batching_window=Duration.seconds(1),
                max_concurrency=context.capacity.enrichment_concurrency,
                report_batch_item_failures=True,
            )
        )
        CfnOutput(self, "Name", value=made.function.function_name).override_logical_id("EnrichmentFunction")


def _keep_from_indices(profiles: str) -> iam.PolicyStatement:
    """No write of the row of Profiles that says which indices are written to: it is maintenance's and operators'."""
    return iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=["dynamodb:PutItem", "dynamodb:UpdateItem"],
        resources=[profiles],
        conditions={"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": ["~system"]}},
    )
