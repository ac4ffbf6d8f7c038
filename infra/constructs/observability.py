"""Alarms and the dashboard."""

from collections.abc import Mapping

from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_opensearchservice as opensearch
from aws_cdk import aws_pipes as pipes
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.alarms import Alarms
from infra.constructs.answer_alarms import add_answer_alarms, add_model_alarms
from infra.constructs.change_alarms import add_change_alarms
from infra.constructs.dashboard import Dashboard, Watched
from infra.constructs.domain_alarms import add_domain_alarms
from infra.constructs.metrics import OwnMetrics
from infra.constructs.pipe_watch import PipeWatch
from infra.context import Context


class Observability(Construct):
    """Alarms, each with its section in docs/runbook.md, and the dashboard."""

    def __init__(  # noqa: PLR0913 - one argument for each monitored part
        self,
        scope: Construct,
        id: str,
        *,
        context: Context,
        api: apigateway.RestApi,
        discovery: lambda_.IFunction,
        enrichment: lambda_.IFunction,
        queue: sqs.IQueue,
        dead_letter_queues: Mapping[str, sqs.IQueue],
        pipes: Mapping[str, pipes.CfnPipe],
        domain: opensearch.Domain,
        discovery_log: logs.ILogGroup | None = None,
    ) -> None:
        """Add the alarms and the dashboard.

        Args:
            scope: The stack.
            id: Of this construct.
            context: Where alarms are sent to, their thresholds, and the namespace of the metrics.
            api: Source of calls, errors and their latency.
            discovery: The discovery function.
            enrichment: The enrichment function.
            queue: Changes that wait for enrichment.
            dead_letter_queues: Failed changes, by the hop that gave up.
            pipes: By the table that each one reads.
            domain: The OpenSearch domain.
            discovery_log: Source of the exposure by provider on the dashboard; none: left out.
        """
        super().__init__(scope, id)
        alarms, ours, stage = Alarms(self, context), OwnMetrics(context.name), api.deployment_stage
        PipeWatch(self, "PipeWatch", context=context, watched=pipes)
        self.brakes = add_answer_alarms(alarms, ours, stage=stage, discovery=discovery)
        """Alarms that stop the rollout of a new version of discovery."""
        add_model_alarms(alarms, ours, usd_per_hour=context.spend_per_hour)
        add_change_alarms(
            alarms,
            ours,
            enrichment=enrichment,
            queue=queue,
            dead_letter_queues=dead_letter_queues,
            watched=pipes,
        )
        add_domain_alarms(alarms, domain)
        watched = Watched(
            ours=ours,
            stage=stage,
            functions={"discovery": discovery, "enrichment": enrichment},
            queue=queue,
            dead_letter_queues=dead_letter_queues,
            pipes=pipes,
            domain=domain,
            discovery_log=discovery_log,
        )
        Dashboard(self, "Dashboard", watched=watched, alarms=alarms.all)
