"""Alarms on changes: given up, waiting, or not noticed."""

from collections.abc import Mapping

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_pipes as pipes
from aws_cdk import aws_sqs as sqs

from infra.constructs import metrics
from infra.constructs.alarms import Alarms
from infra.constructs.metrics import OwnMetrics

OLDEST_S = 15 * 60


def add_change_alarms(
    alarms: Alarms,
    ours: OwnMetrics,
    *,
    enrichment: lambda_.IFunction,
    queue: sqs.IQueue,
    dead_letter_queues: Mapping[str, sqs.IQueue],
    watched: Mapping[str, pipes.CfnPipe],
) -> None:
    """Add the alarms; dead-letter queues are by the hop that gave up, Pipes by the table that each one reads."""
    for name, dead in dead_letter_queues.items():
        alarms.add(
            f"DeadLetters{name}",
            dead.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            over=0,
            means=f"Changes were given up at the hop {name}: these capabilities are out of date until redriven.",
            section="Dead letters",
        )
    for name, pipe in watched.items():
        alarms.add(
            f"PipeStopped{name}",
            ours.pipe_running(name),
            under=1,
            periods=(3, 3),
            missing=cloudwatch.TreatMissingData.BREACHING,
            means=f"The Pipe of the table {name} does not run, or nobody could see that it does: "
            "changes are not noticed, and after 24 hours they are lost to the stream.",
            section="A Pipe has stopped",
        )
        alarms.add(
            f"PipeFailing{name}",
            metrics.pipe_failures(pipe),
            over=0,
            periods=(2, 3),
            means=f"The Pipe of the table {name} fails, times out or is throttled: changes come late.",
            section="A Pipe fails",
        )
    alarms.add(
        "ChangesWaiting",
        queue.metric_approximate_age_of_oldest_message(statistic="Maximum"),
        over=OLDEST_S,
        periods=(3, 3),
        means=f"A change has waited longer than {OLDEST_S // 60} minutes for enrichment.",
        section="Changes wait",
    )
    alarms.add(
        "EnrichmentFailing",
        enrichment.metric_errors(period=metrics.FIVE_MINUTES),
        over=0,
        periods=(3, 3),
        means="The enrichment function crashes or times out: its changes are tried again, then given up.",
        section="Enrichment fails",
    )
    alarms.add(
        "EnrichmentThrottled",
        enrichment.metric_throttles(period=metrics.FIVE_MINUTES),
        over=0,
        periods=(3, 3),
        means="Batches of changes find no free execution environment: a limit on concurrency is too low.",
        section="Functions are throttled",
    )
