"""The CloudWatch dashboard."""

from collections.abc import Mapping, Sequence

from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_opensearchservice as opensearch
from aws_cdk import aws_pipes as pipes
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs import metrics
from infra.constructs.demand_query import demand_widget
from infra.constructs.metrics import OwnMetrics
from infra.constructs.watched import Watched
from infra.context import Context

FIRST_PLACES = '"position": 1, "id": "*", "rev": *, "provider": "*", "provider_verified": *, "score"'
"""The first candidate in a record of the decision log, as a pattern of Logs Insights: `*` is captured."""
_HALF, _THIRD, _FULL = 12, 8, 24
_GOOD = (
    "**Is discovery good today?** Yes, if no alarm is red, answers are rarely degraded, the share of `match` is what "
    "it was last week, and p99 stays under 3.5 s. What each alarm means: `docs/runbook.md`."
)


class Dashboard(Construct):
    """From top to bottom: answers, changes, index."""

    def __init__(
        self, scope: Construct, id: str, *, context: Context, watched: Watched, alarms: Sequence[cloudwatch.IAlarm]
    ) -> None:
        super().__init__(scope, id)
        ours = watched.ours
        page = cloudwatch.Dashboard(self, "Page", period_override=cloudwatch.PeriodOverride.AUTO)
        page.add_widgets(cloudwatch.TextWidget(markdown=_GOOD, width=_FULL, height=2))
        page.add_widgets(cloudwatch.AlarmStatusWidget(alarms=list(alarms), title="Alarms", width=_FULL, height=3))
        page.add_widgets(_answers(ours, watched.stage), _verdicts(ours), _degraded_share(ours))
        page.add_widgets(_latency(ours), _stages(ours))
        page.add_widgets(
            _tokens(ours),
            _dollars(ours),
            _functions(
                {
                    "discovery": watched.discovery,
                    "enrichment": watched.enrichment,
                    "feedback": watched.feedback,
                    "learning": watched.learning,
                }
            ),
        )
        page.add_widgets(_exposure(watched.discovery_log), demand_widget(context, watched.discovery_log, width=_HALF))
        page.add_widgets(_feedback(ours))
        page.add_widgets(_outcomes(ours), _queues(watched.queue, watched.dead_letter_queues), _pipes(watched.pipes))
        page.add_widgets(*_index(watched.domain))


def _graph(
    title: str, left: Sequence[cloudwatch.IMetric], *, width: int = _THIRD, **more: object
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(left), width=width, **more)  # type: ignore[arg-type]


def _answers(ours: OwnMetrics, stage: apigateway.Stage) -> cloudwatch.GraphWidget:
    every = metrics.FIVE_MINUTES
    return _graph(
        "Calls",
        [
            stage.metric_count(period=every, statistic="Sum", label="calls"),
            ours.discovery("Answers", label="answers"),
            stage.metric_client_error(period=every, label="4xx"),
            stage.metric_server_error(period=every, label="5xx"),
            ours.discovery("Failed", label="failed by a dependency"),
        ],
    )


def _verdicts(ours: OwnMetrics) -> cloudwatch.GraphWidget:
    return _graph(
        "Verdicts",
        [ours.discovery(f"Verdict{verdict}", label=verdict.lower()) for verdict in metrics.VERDICTS],
        stacked=True,
    )


def _degraded_share(ours: OwnMetrics) -> cloudwatch.GraphWidget:
    labels = {"degraded": "any"} | {f"degraded{part}": part.lower() for part in metrics.PARTS}
    answers = ours.discovery("Answers")
    shares = [
        metrics.share(name, ours.discovery(name[0].upper() + name[1:]), answers, label=label)
        for name, label in labels.items()
    ]
    return _graph("Degraded answers by what they lack, %", shares)


def _latency(ours: OwnMetrics) -> cloudwatch.GraphWidget:
    return _graph(
        "Latency of an answer, ms",
        [ours.discovery("TotalMs", p, label=p) for p in ("p50", "p90", "p99")],
        width=_HALF,
    )


def _stages(ours: OwnMetrics) -> cloudwatch.GraphWidget:
    return _graph(
        "Latency by stage, p50 left and p99 right, ms",
        [ours.discovery(f"{stage}Ms", "p50", label=stage.lower()) for stage in metrics.STAGES],
        width=_HALF,
        right=[ours.discovery(f"{stage}Ms", "p99", label=f"{stage.lower()} p99") for stage in metrics.STAGES],
    )


def _tokens(ours: OwnMetrics) -> cloudwatch.GraphWidget:
    return _graph(
        "Tokens",
        [
            service(name, label=f"{service.__name__} {name.removesuffix('Tokens').lower()}")
            for service in (ours.discovery, ours.enrichment)
            for name in ("InputTokens", "OutputTokens")
        ],
        stacked=True,
    )


def _dollars(ours: OwnMetrics) -> cloudwatch.GraphWidget:
    services = ours.usd()
    per_day = [
        cloudwatch.MathExpression(
            expression=f"{name} * 288",
            using_metrics={name: cost},
            label=f"{name}, at this rate a day",
            period=metrics.FIVE_MINUTES,
        )
        for name, cost in services.items()
    ]
    return _graph("Dollars of models", list(services.values()), right=per_day)


def _functions(functions: Mapping[str, lambda_.IFunction]) -> cloudwatch.GraphWidget:
    every = metrics.FIVE_MINUTES
    return _graph(
        "Functions",
        [
            metric
            for name, function in functions.items()
            for metric in (
                function.metric_errors(period=every, label=f"{name} errors"),
                function.metric_throttles(period=every, label=f"{name} throttled"),
            )
        ],
    )


def _exposure(log: logs.ILogGroup) -> cloudwatch.LogQueryWidget:
    """First places by provider, verified or claimed, to see whether one provider takes them all."""
    return cloudwatch.LogQueryWidget(
        title="First places by provider",
        log_group_names=[log.log_group_name],
        query_lines=[
            "fields message",
            f"parse message '{FIRST_PLACES}' as first, rev, provider, verified",
            "filter ispresent(provider)",
            "stats count(*) as first_places by provider, verified",
            "sort first_places desc",
            "limit 20",
        ],
        view=cloudwatch.LogQueryVisualizationType.BAR,
        width=_HALF,
    )


def _feedback(ours: OwnMetrics) -> cloudwatch.GraphWidget:
    return _graph(
        "Outcomes that callers report",
        [ours.feedback(f"Outcomes{event}", label=event.lower()) for event in metrics.EVENTS],
        stacked=True,
    )


def _outcomes(ours: OwnMetrics) -> cloudwatch.GraphWidget:
    return _graph(
        "Changes by outcome",
        [ours.enrichment(outcome, label=outcome.lower()) for outcome in metrics.OUTCOMES],
        stacked=True,
    )


def _queues(queue: sqs.IQueue, dead: Mapping[str, sqs.IQueue]) -> cloudwatch.GraphWidget:
    return _graph(
        "Age of the oldest change, s; given up on the right",
        [queue.metric_approximate_age_of_oldest_message(statistic="Maximum", label="age")],
        right=[
            each.metric_approximate_number_of_messages_visible(statistic="Maximum", label=name)
            for name, each in dead.items()
        ],
    )


def _pipes(watched: Mapping[str, pipes.CfnPipe]) -> cloudwatch.GraphWidget:
    return _graph(
        "Changes through the Pipes; failures on the right",
        [metrics.pipe(pipe, "EventCount", label=name) for name, pipe in watched.items()],
        right=[metrics.pipe(pipe, "ExecutionFailed", label=f"{name} failed") for name, pipe in watched.items()],
    )


def _index(domain: opensearch.Domain) -> tuple[cloudwatch.GraphWidget, ...]:
    every = metrics.FIVE_MINUTES
    return (
        _graph("Search latency, ms", [domain.metric_search_latency(period=every)]),
        _graph(
            "Load of the domain, %",
            [
                domain.metric_cpu_utilization(period=every, label="processors"),
                domain.metric_jvm_memory_pressure(period=every, label="heap"),
                metrics.free_storage_share(domain),
            ],
        ),
        _graph("Documents", [domain.metric_searchable_documents(period=every)]),
    )
