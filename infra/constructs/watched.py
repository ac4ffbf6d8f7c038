"""The resources that alarms and the dashboard monitor, and their metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs

from infra.alarms import UNHEALTHY, Expression, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The monitored resources; mappings are by display name."""

    name: str  # Of the deployment, and namespace of the metrics that its functions write themselves
    aliases: Mapping[str, lambda_.Alias]  # Of the functions whose versions take over by a rollout
    resources: Mapping[str, Any]  # With metrics of their services, by `infra.alarms.Metric.source`
    dead_letter_queues: Mapping[str, sqs.IQueue]  # By the hop that gave up
    logs: Mapping[str, logs.ILogGroup]  # Of the functions that operators query

    def metric(self, wanted: Metric | Expression, *, name: str = "", label: str | None = None) -> cloudwatch.IMetric:
        """A metric or an expression; `name` is of the queue of dead letters that is the source `each`."""
        if isinstance(wanted, Expression):
            return cloudwatch.MathExpression(
                expression=wanted.text,
                using_metrics={key: self.metric(part, name=name) for key, part in wanted.metrics.items()},
                label=label or wanted.label,
                period=Duration.minutes(wanted.minutes),
            )
        options: dict[str, Any] = {
            "statistic": wanted.statistic,
            "period": Duration.minutes(wanted.minutes),
            "label": label,
        }
        if named := self._namespace_and_dimensions(wanted):
            return cloudwatch.Metric(
                namespace=named[0], metric_name=wanted.name, dimensions_map=named[1] or None, **options
            )
        resource = self.dead_letter_queues[name] if wanted.source == "each" else self.resources[wanted.source]
        made: cloudwatch.IMetric = resource.metric(wanted.name, **options)
        return made

    def _namespace_and_dimensions(self, wanted: Metric) -> tuple[str, Mapping[str, str]] | None:
        """Of a metric that no construct of the CDK makes."""
        kind, _, service = wanted.source.partition(".")
        if kind == "version":
            alias = self.aliases[service]
            version, function = alias.version.version, alias.lambda_.function_name
            if wanted.name == UNHEALTHY:
                return self.name, {"service": service, "version": version}
            of_alias = f"{function}:{alias.alias_name}"
            return "AWS/Lambda", {"FunctionName": function, "Resource": of_alias, "ExecutedVersion": version}
        if wanted.source == "account":
            return "AWS/Lambda", {}
        return (self.name, {"service": service}) if kind == "own" else None
