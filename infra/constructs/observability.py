"""Alarms and the dashboard."""

from collections.abc import Mapping

from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_opensearchservice as opensearch
from aws_cdk import aws_pipes as pipes
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs import metrics
from infra.constructs.alarms import Alarms
from infra.constructs.dashboard import Dashboard, Watched
from infra.constructs.pipe_watch import PipeWatch
from infra.context import Context

SLOW_MS = 3500
"""The budgets of an answer together: encode 400, retrieve 600, rerank 2,500."""
ERROR_PERCENT = 1
DEGRADED_PERCENT = 20
AT_LEAST = 3
"""Fewer errors or degraded answers in five minutes raise no alarm."""
OLDEST_S = 15 * 60
LOW_STORAGE_PERCENT = 25
HIGH_PRESSURE_PERCENT = 95

_BAD = cloudwatch.TreatMissingData.BREACHING


class Observability(Construct):
    """Alarms, each with its section in docs/runbook.md, and the dashboard."""

    def __init__(  # noqa: PLR0913 - one argument for each monitored part
        self,
        scope: Construct,
        id: str,
        *,
        api: apigateway.RestApi,
        discovery: lambda_.IFunction,
        enrichment: lambda_.IFunction,
        queue: sqs.IQueue,
        dead_letter_queues: Mapping[str, sqs.IQueue],
        pipes: Mapping[str, pipes.CfnPipe],
        domain: opensearch.Domain,
        context: Context,
        discovery_log: logs.ILogGroup | None = None,
    ) -> None:
        """Add the alarms and the dashboard.

        Args:
            scope: The stack.
            id: Of this construct.
            api: Source of calls, errors and their latency.
            discovery: The discovery function.
            enrichment: The enrichment function.
            queue: Changes that wait for enrichment.
            dead_letter_queues: Failed changes, by the hop that gave up.
            pipes: By the table that each one reads.
            domain: The OpenSearch domain.
            context: Where alarms are sent to, and the namespace of the metrics.
            discovery_log: Source of the exposure by provider on the dashboard; none: left out.
        """
        super().__init__(scope, id)
        self.alarms = Alarms(self, context)
        self._ours = metrics.OwnMetrics(context.name)
        PipeWatch(self, "PipeWatch", context=context, watched=pipes)
        self._watch_answers(api.deployment_stage)
        self._watch_changes(enrichment, queue, dead_letter_queues, pipes)
        self._watch_domain(domain)
        watched = Watched(
            ours=self._ours,
            stage=api.deployment_stage,
            functions={"discovery": discovery, "enrichment": enrichment},
            queue=queue,
            dead_letter_queues=dead_letter_queues,
            pipes=pipes,
            domain=domain,
            discovery_log=discovery_log,
        )
        Dashboard(self, "Dashboard", watched=watched, alarms=self.alarms.all)

    def _watch_answers(self, stage: apigateway.Stage) -> None:
        self.alarms.add(
            "DiscoverySlow",
            self._ours.discovery("TotalMs", "p99"),
            over=SLOW_MS,
            periods=(3, 5),
            means="One answer in a hundred takes longer than all budgets together.",
            section="Discovery is slow",
        )
        errors = metrics.share(
            "errors",
            stage.metric_server_error(period=metrics.FIVE_MINUTES),
            stage.metric_count(period=metrics.FIVE_MINUTES, statistic="Sum"),
            label="errors",
            at_least=AT_LEAST,
        )
        self.alarms.add(
            "DiscoveryFailing",
            errors,
            over=ERROR_PERCENT,
            periods=(2, 3),
            means=f"More than {ERROR_PERCENT} % of calls to the API get a 5xx.",
            section="Discovery fails",
        )
        degraded = metrics.share(
            "degraded",
            self._ours.discovery("Degraded"),
            self._ours.discovery("Answers"),
            label="degraded",
            at_least=AT_LEAST,
        )
        self.alarms.add(
            "DiscoveryDegraded",
            degraded,
            over=DEGRADED_PERCENT,
            periods=(3, 3),
            means=f"More than {DEGRADED_PERCENT} % of answers lack a signal: they come, but are ranked worse.",
            section="Answers are degraded",
        )

    def _watch_changes(
        self,
        enrichment: lambda_.IFunction,
        queue: sqs.IQueue,
        dead_letter_queues: Mapping[str, sqs.IQueue],
        watched: Mapping[str, pipes.CfnPipe],
    ) -> None:
        for name, dead in dead_letter_queues.items():
            self.alarms.add(
                f"DeadLetters{name}",
                dead.metric_approximate_number_of_messages_visible(statistic="Maximum"),
                over=0,
                means=f"Changes were given up at the hop {name}: these capabilities are out of date until redriven.",
                section="Dead letters",
            )
        for name, pipe in watched.items():
            self.alarms.add(
                f"PipeStopped{name}",
                self._ours.pipe_running(name),
                under=1,
                periods=(3, 3),
                missing=_BAD,
                means=f"The Pipe of the table {name} does not run, or nobody could see that it does: "
                "changes are not noticed, and after 24 hours they are lost to the stream.",
                section="A Pipe has stopped",
            )
            self.alarms.add(
                f"PipeFailing{name}",
                metrics.pipe_failures(pipe),
                over=0,
                periods=(2, 3),
                means=f"The Pipe of the table {name} fails, times out or is throttled: changes come late.",
                section="A Pipe fails",
            )
        self.alarms.add(
            "ChangesWaiting",
            queue.metric_approximate_age_of_oldest_message(statistic="Maximum"),
            over=OLDEST_S,
            periods=(3, 3),
            means=f"A change has waited longer than {OLDEST_S // 60} minutes for enrichment.",
            section="Changes wait",
        )
        self.alarms.add(
            "EnrichmentFailing",
            enrichment.metric_errors(period=metrics.FIVE_MINUTES),
            over=0,
            periods=(3, 3),
            means="The enrichment function crashes or times out: its changes are tried again, then given up.",
            section="Enrichment fails",
        )

    def _watch_domain(self, domain: opensearch.Domain) -> None:
        minute = metrics.MINUTE
        self.alarms.add(
            "IndexRed",
            domain.metric_cluster_status_red(period=minute),
            over=0,
            means="Part of the index is missing: answers fail or are incomplete.",
            section="The index is red",
        )
        self.alarms.add(
            "IndexYellow",
            domain.metric_cluster_status_yellow(period=minute),
            over=0,
            periods=(30, 30),
            means="Copies of the index are missing for half an hour: nothing is lost, but one more failure would be.",
            section="The index is yellow",
        )
        self.alarms.add(
            "IndexStorageLow",
            metrics.free_storage_share(domain),
            under=LOW_STORAGE_PERCENT,
            periods=(10, 15),
            means=f"Less than {LOW_STORAGE_PERCENT} % of the domain's storage is free.",
            section="Storage runs out",
        )
        self.alarms.add(
            "IndexMemoryPressure",
            domain.metric_jvm_memory_pressure(period=minute),
            over=HIGH_PRESSURE_PERCENT,
            periods=(3, 3),
            means=f"The heap of a node is more than {HIGH_PRESSURE_PERCENT} % full: it may soon refuse calls.",
            section="Memory pressure",
        )
        self.alarms.add(
            "IndexWritesBlocked",
            domain.metric_cluster_index_writes_blocked(period=minute),
            over=0,
            periods=(5, 5),
            means="The domain takes no writes, for want of storage or memory: changes wait.",
            section="Writes are blocked",
        )
