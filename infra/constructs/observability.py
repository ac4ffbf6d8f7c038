"""Alarms and the dashboard."""

from collections.abc import Mapping

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_opensearchservice as opensearch
from aws_cdk import aws_pipes as pipes
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs import metrics
from infra.constructs.dashboard import Dashboard, Watched
from infra.constructs.pipe_watch import PipeWatch

SLOW_MS = 3500
"""The budgets of an answer together: encode 400, retrieve 600, rerank 2,500."""
ERROR_PERCENT = 1
DEGRADED_PERCENT = 20
AT_LEAST = 3
"""Fewer errors or degraded answers in five minutes raise no alarm."""
OLDEST_S = 15 * 60
LOW_STORAGE_PERCENT = 25
HIGH_PRESSURE_PERCENT = 95

_ABOVE = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
_BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
_FINE = cloudwatch.TreatMissingData.NOT_BREACHING
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
        alarm_email: str | None,
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
            alarm_email: Address that alarms and their end are sent to; none: nothing is sent.
            discovery_log: Source of the exposure by provider on the dashboard; none: left out.
        """
        super().__init__(scope, id)
        self.topic = self._topic(alarm_email) if alarm_email else None
        self.alarms: list[cloudwatch.Alarm] = []
        PipeWatch(self, "PipeWatch", watched=pipes)
        self._watch_answers(api.deployment_stage)
        self._watch_changes(enrichment, queue, dead_letter_queues, pipes)
        self._watch_domain(domain)
        watched = Watched(
            stage=api.deployment_stage,
            functions={"discovery": discovery, "enrichment": enrichment},
            queue=queue,
            dead_letter_queues=dead_letter_queues,
            pipes=pipes,
            domain=domain,
            discovery_log=discovery_log,
        )
        Dashboard(self, "Dashboard", watched=watched, alarms=self.alarms)

    def _watch_answers(self, stage: apigateway.Stage) -> None:
        self._alarm(
            "DiscoverySlow",
            metrics.discovery("TotalMs", "p99"),
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
        self._alarm(
            "DiscoveryFailing",
            errors,
            over=ERROR_PERCENT,
            periods=(2, 3),
            means=f"More than {ERROR_PERCENT} % of calls to the API get a 5xx.",
            section="Discovery fails",
        )
        degraded = metrics.share(
            "degraded", metrics.discovery("Degraded"), metrics.discovery("Answers"), label="degraded", at_least=AT_LEAST
        )
        self._alarm(
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
            self._alarm(
                f"DeadLetters{name}",
                dead.metric_approximate_number_of_messages_visible(statistic="Maximum"),
                over=0,
                means=f"Changes were given up at the hop {name}: these capabilities are out of date until redriven.",
                section="Dead letters",
            )
        for name, pipe in watched.items():
            self._alarm(
                f"PipeStopped{name}",
                metrics.pipe_running(name),
                under=1,
                periods=(3, 3),
                missing=_BAD,
                means=f"The Pipe of the table {name} does not run, or nobody could see that it does: "
                "changes are not noticed, and after 24 hours they are lost to the stream.",
                section="A Pipe has stopped",
            )
            self._alarm(
                f"PipeFailing{name}",
                metrics.pipe_failures(pipe),
                over=0,
                periods=(2, 3),
                means=f"The Pipe of the table {name} fails, times out or is throttled: changes come late.",
                section="A Pipe fails",
            )
        self._alarm(
            "ChangesWaiting",
            queue.metric_approximate_age_of_oldest_message(statistic="Maximum"),
            over=OLDEST_S,
            periods=(3, 3),
            means=f"A change has waited longer than {OLDEST_S // 60} minutes for enrichment.",
            section="Changes wait",
        )
        self._alarm(
            "EnrichmentFailing",
            enrichment.metric_errors(period=metrics.FIVE_MINUTES),
            over=0,
            periods=(3, 3),
            means="The enrichment function crashes or times out: its changes are tried again, then given up.",
            section="Enrichment fails",
        )

    def _watch_domain(self, domain: opensearch.Domain) -> None:
        minute = metrics.MINUTE
        self._alarm(
            "IndexRed",
            domain.metric_cluster_status_red(period=minute),
            over=0,
            means="Part of the index is missing: answers fail or are incomplete.",
            section="The index is red",
        )
        self._alarm(
            "IndexYellow",
            domain.metric_cluster_status_yellow(period=minute),
            over=0,
            periods=(30, 30),
            means="Copies of the index are missing for half an hour: nothing is lost, but one more failure would be.",
            section="The index is yellow",
        )
        self._alarm(
            "IndexStorageLow",
            metrics.free_storage_share(domain),
            under=LOW_STORAGE_PERCENT,
            periods=(10, 15),
            means=f"Less than {LOW_STORAGE_PERCENT} % of the domain's storage is free.",
            section="Storage runs out",
        )
        self._alarm(
            "IndexMemoryPressure",
            domain.metric_jvm_memory_pressure(period=minute),
            over=HIGH_PRESSURE_PERCENT,
            periods=(3, 3),
            means=f"The heap of a node is more than {HIGH_PRESSURE_PERCENT} % full: it may soon refuse calls.",
            section="Memory pressure",
        )
        self._alarm(
            "IndexWritesBlocked",
            domain.metric_cluster_index_writes_blocked(period=minute),
            over=0,
            periods=(5, 5),
            means="The domain takes no writes, for want of storage or memory: changes wait.",
            section="Writes are blocked",
        )

    def _alarm(
        self,
        id: str,
        metric: cloudwatch.IMetric,
        *,
        means: str,
        section: str,
        over: float | None = None,
        under: float | None = None,
        periods: tuple[int, int] = (1, 1),
        missing: cloudwatch.TreatMissingData = _FINE,
    ) -> None:
        """Add an alarm: the metric is over or under its threshold in `periods[0]` of the last `periods[1]` periods."""
        threshold = over if over is not None else under
        assert threshold is not None  # noqa: S101 - one of the two is given
        alarm = cloudwatch.Alarm(
            self,
            id,
            metric=metric,
            threshold=threshold,
            comparison_operator=_ABOVE if over is not None else _BELOW,
            datapoints_to_alarm=periods[0],
            evaluation_periods=periods[1],
            treat_missing_data=missing,
            alarm_description=f'{means} What to do: docs/runbook.md, "{section}".',
        )
        if self.topic:
            alarm.add_alarm_action(actions.SnsAction(self.topic))
            alarm.add_ok_action(actions.SnsAction(self.topic))
        self.alarms.append(alarm)

    def _topic(self, email: str) -> sns.Topic:
        """Encrypted with a customer managed key, because CloudWatch may not use the AWS managed one of SNS."""
        cloudwatch_alarms = iam.ServicePrincipal(
            "cloudwatch.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
        )
        key = kms.Key(self, "AlarmKey", enable_key_rotation=True, removal_policy=RemovalPolicy.DESTROY)
        key.grant(cloudwatch_alarms, "kms:Decrypt", "kms:GenerateDataKey*")
        topic = sns.Topic(self, "Alarms", master_key=key, enforce_ssl=True)
        topic.grant_publish(cloudwatch_alarms)
        topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic
