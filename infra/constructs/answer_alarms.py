"""Alarms on answers: failing, slow, degraded, refused, or too expensive."""

from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_

from infra.constructs import metrics
from infra.constructs.alarms import Alarms
from infra.constructs.metrics import OwnMetrics
from infra.constructs.watched import Watched

SLOW_MS = 3500
"""The budgets of an answer together: encode 400, retrieve 600, rerank 2,500."""
ERROR_PERCENT = 1
DEGRADED_PERCENT = 20
REFUSED_PERCENT = 25
AT_LEAST = 3
"""Fewer errors or degraded answers in five minutes raise no alarm."""
AT_LEAST_REFUSED = 50
ACCOUNT_PERCENT = 80
"""Of the account's concurrent executions."""


def add_answer_alarms(alarms: Alarms, watched: Watched) -> list[cloudwatch.Alarm]:
    """Add the alarms, and return those that stop the rollout of a new version.

    These watch the function and what it writes, not the API: the API depends on the alias that is moved.
    """
    ours, discovery = watched.ours, watched.discovery
    slow = alarms.add(
        "DiscoverySlow",
        ours.discovery("TotalMs", "p99"),
        over=SLOW_MS,
        periods=(3, 5),
        means="One answer in a hundred takes longer than all budgets together.",
        section="Discovery is slow",
    )
    crashing = alarms.add(
        "DiscoveryCrashing",
        discovery.metric_errors(period=metrics.MINUTE),
        over=AT_LEAST,
        means="The discovery function crashes or times out.",
        section="Discovery fails",
    )
    degraded = alarms.add(
        "DiscoveryDegraded",
        metrics.share(
            "degraded", ours.discovery("Degraded"), ours.discovery("Answers"), label="degraded", at_least=AT_LEAST
        ),
        over=DEGRADED_PERCENT,
        periods=(3, 3),
        means=f"More than {DEGRADED_PERCENT} % of answers lack a signal: they come, but are ranked worse.",
        section="Answers are degraded",
    )
    alarms.add(
        "FeedbackFailing",
        watched.feedback.metric_errors(period=metrics.FIVE_MINUTES),
        over=AT_LEAST,
        means="The feedback function crashes or times out: callers cannot report outcomes.",
        section="Feedback fails",
    )
    _add_gateway_alarms(alarms, watched.stage)
    _add_limit_alarms(alarms, discovery)
    return [slow, crashing, degraded]


def add_model_alarms(alarms: Alarms, ours: OwnMetrics, *, usd_per_hour: int) -> None:
    """Add alarms on models: a refusal that is permanent, and what the calls cost."""
    alarms.add(
        "ModelRefused",
        metrics.total(
            {"reranking": ours.discovery("ModelRefused"), "writing": ours.enrichment("ModelRefused")}, label="refused"
        ),
        over=0,
        means="Bedrock refuses a model for good; the log names the model and the cause.",
        section="A model is refused",
    )
    if usd_per_hour:
        hour = Duration.hours(1)
        spent = {name: metric.with_(period=hour) for name, metric in ours.usd().items()}
        alarms.add(
            "SpendHigh",
            metrics.total(spent, label="dollars", period=hour),
            over=usd_per_hour,
            means=f"Models cost more than {usd_per_hour} dollars in an hour.",
            section="Models cost too much",
        )


def _add_gateway_alarms(alarms: Alarms, stage: apigateway.Stage) -> None:
    every = metrics.FIVE_MINUTES
    calls = stage.metric_count(period=every, statistic="Sum")
    failed = stage.metric_server_error(period=every)
    alarms.add(
        "DiscoveryFailing",
        metrics.share("errors", failed, calls, label="errors", at_least=AT_LEAST),
        over=ERROR_PERCENT,
        periods=(2, 3),
        means=f"More than {ERROR_PERCENT} % of calls to the API get a 5xx.",
        section="Discovery fails",
    )
    alarms.add(
        "CallsRefused",
        metrics.share(
            "refused", stage.metric_client_error(period=every), calls, label="4xx", at_least=AT_LEAST_REFUSED
        ),
        over=REFUSED_PERCENT,
        periods=(3, 3),
        means=f"More than {REFUSED_PERCENT} % of calls to the API get a 4xx: a client is wrong, or probing.",
        section="Calls are refused",
    )


def _add_limit_alarms(alarms: Alarms, discovery: lambda_.IFunction) -> None:
    alarms.add(
        "DiscoveryThrottled",
        discovery.metric_throttles(period=metrics.FIVE_MINUTES),
        over=0,
        periods=(2, 3),
        means="Calls find no free execution environment and get a 5xx: a limit on concurrency is too low.",
        section="Functions are throttled",
    )
    alarms.add(
        "ConcurrencyHigh",
        cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name="ClaimedAccountConcurrency",
            statistic="Maximum",
            period=metrics.FIVE_MINUTES,
        ),
        over=ACCOUNT_PERCENT * 10,
        periods=(3, 3),
        means=f"The account uses {ACCOUNT_PERCENT} % of 1,000 concurrent executions, the limit unless AWS raised it.",
        section="Functions are throttled",
    )
