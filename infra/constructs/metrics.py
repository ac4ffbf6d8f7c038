"""Metrics of alarms and dashboard: those that the functions write, and those of AWS."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_opensearchservice as opensearch
from aws_cdk import aws_pipes as pipes

FIVE_MINUTES = Duration.minutes(5)
MINUTE = Duration.minutes(1)
STAGES = ("Queue", "Encode", "Lexical", "Neural", "Memory", "Fetch", "Rerank", "Measure", "Reliability", "Receipt")
"""Stages of an answer, each with a metric `<Stage>Ms`."""
PARTS = ("Llm", "Neural", "Lexical", "Bm25", "Audiences", "Memory", "Receipt", "Reliability")
"""Parts an answer can lack, each with a metric `Degraded<Part>`."""
VERDICTS = ("Match", "Weak", "None")
OUTCOMES = ("Indexed", "Unchanged", "Deleted", "Superseded", "Waiting", "Rejected", "Refused", "Postponed")
"""Outcomes of a change, each a metric."""
EVENTS = ("Selected", "Succeeded", "Failed", "Wrong")
"""Events that callers report, each with a metric `Outcomes<Event>`."""
PIPE_RUNNING = "PipeRunning"


@dataclass(frozen=True, slots=True)
class OwnMetrics:
    """The metrics that a deployment writes itself."""

    namespace: str
    """`Settings.metrics` of its functions."""

    def discovery(self, name: str, statistic: str = "Sum", **more: str) -> cloudwatch.Metric:
        """A metric of the discovery function, over five minutes."""
        return self._of("discovery", name, statistic, **more)

    def enrichment(self, name: str, statistic: str = "Sum", **more: str) -> cloudwatch.Metric:
        """A metric of the enrichment function, over five minutes."""
        return self._of("enrichment", name, statistic, **more)

    def feedback(self, name: str, statistic: str = "Sum", **more: str) -> cloudwatch.Metric:
        """A metric of the feedback function, over five minutes."""
        return self._of("feedback", name, statistic, **more)

    def usd(self) -> dict[str, cloudwatch.Metric]:
        """Dollars spent on models, by function."""
        return {"discovery": self.discovery("Usd"), "enrichment": self.enrichment("Usd")}

    def pipe_running(self, name: str) -> cloudwatch.Metric:
        """1 if the Pipe of this name runs, else 0: written by PipeWatch."""
        return cloudwatch.Metric(
            namespace=self.namespace,
            metric_name=PIPE_RUNNING,
            dimensions_map={"pipe": name},
            statistic="Minimum",
            period=FIVE_MINUTES,
        )

    def _of(self, service: str, name: str, statistic: str, **more: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=self.namespace,
            metric_name=name,
            dimensions_map={"service": service},
            statistic=statistic,
            period=FIVE_MINUTES,
            **more,  # type: ignore[arg-type]  # label and colour
        )


def share(
    name: str, part: cloudwatch.IMetric, whole: cloudwatch.IMetric, *, label: str, at_least: int = 0
) -> cloudwatch.IMetric:
    """Part of whole in percent; 0 if the part is below `at_least`, which is too few to be significant.

    The name is that of the part in the expression: a graph must not use one for two metrics.
    """
    return cloudwatch.MathExpression(
        expression=f"IF({name} >= {at_least}, 100 * {name} / whole, 0)",
        using_metrics={name: part, "whole": whole},
        label=label,
        period=FIVE_MINUTES,
    )


def total(
    metrics: Mapping[str, cloudwatch.IMetric], *, label: str, each: str = "{}", period: Duration = FIVE_MINUTES
) -> cloudwatch.IMetric:
    """The sum of metrics, by names of their own; `each` is an expression of one of them."""
    expression = " + ".join(f"FILL({each.format(name)}, 0)" for name in metrics)
    return cloudwatch.MathExpression(expression=expression, using_metrics=dict(metrics), label=label, period=period)


def pipe(of: pipes.CfnPipe, name: str, **more: str) -> cloudwatch.Metric:
    """A metric that EventBridge Pipes writes about a Pipe."""
    return cloudwatch.Metric(
        namespace="AWS/EventBridge/Pipes",
        metric_name=name,
        dimensions_map={"PipeName": of.ref},
        statistic="Sum",
        period=FIVE_MINUTES,
        **more,  # type: ignore[arg-type]  # label and colour
    )


def pipe_failures(of: pipes.CfnPipe) -> cloudwatch.IMetric:
    """Executions that did not deliver all their changes to the bus."""
    failures = ("ExecutionFailed", "ExecutionPartiallyFailed", "ExecutionTimeout", "ExecutionThrottled")
    return total({name[0].lower() + name[1:]: pipe(of, name) for name in failures}, label="failed")


def free_storage_share(domain: opensearch.Domain) -> cloudwatch.IMetric:
    """Free storage of the whole domain in percent, whatever its size.

    Both metrics are megabytes written once a minute, so only a period of a minute sums the nodes and not the minutes.
    """
    return cloudwatch.MathExpression(
        expression="100 * free / (free + used)",
        using_metrics={
            "free": domain.metric_free_storage_space(statistic="Sum", period=MINUTE),
            "used": domain.metric("ClusterUsedSpace", statistic="Maximum", period=MINUTE),
        },
        label="free storage",
        period=MINUTE,
    )
