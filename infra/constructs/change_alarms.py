"""Alarms on changes: given up, waiting, or not noticed."""

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.constructs import metrics
from infra.constructs.alarms import Alarms
from infra.constructs.watched import Watched

OLDEST_S = 15 * 60


def add_change_alarms(alarms: Alarms, watched: Watched) -> None:
    """Add the alarms on the queue, its dead letters and the function."""
    for name, dead in watched.dead_letter_queues.items():
        alarms.add(
            f"DeadLetters{name}",
            dead.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            over=0,
            means=f"Changes were given up at the hop {name}: these capabilities are out of date until redriven.",
            section="Dead letters",
        )
    alarms.add(
        "ChangesWaiting",
        watched.queue.metric_approximate_age_of_oldest_message(statistic="Maximum"),
        over=OLDEST_S,
        periods=(3, 3),
        means=f"A change has waited longer than {OLDEST_S // 60} minutes for enrichment.",
        section="Changes wait",
    )
    alarms.add(
        "EnrichmentFailing",
        watched.enrichment.metric_errors(period=metrics.FIVE_MINUTES),
        over=0,
        periods=(3, 3),
        means="The enrichment function crashes or times out: its changes are tried again, then given up.",
        section="Enrichment fails",
    )
    alarms.add(
        "LearningFailing",
        watched.learning.metric_errors(period=metrics.FIVE_MINUTES),
        over=0,
        periods=(3, 3),
        means="The learning function crashes or times out: what callers report does not change answers.",
        section="Learning fails",
    )
    alarms.add(
        "EnrichmentThrottled",
        watched.enrichment.metric_throttles(period=metrics.FIVE_MINUTES),
        over=0,
        periods=(3, 3),
        means="Batches of changes find no free execution environment: a limit on concurrency is too low.",
        section="Functions are throttled",
    )
    alarms.add(
        "MaintenanceFailing",
        watched.maintenance.metric_failed(period=metrics.FIVE_MINUTES, statistic="Sum"),
        over=0,
        means="A repair, reindex or backfill gave up: what was lost stays lost until the next night's repair.",
        section="Maintenance fails",
    )


def add_pipe_alarms(alarms: Alarms, watched: Watched) -> None:
    """Add the alarms on the Pipes; one whose state nobody sees counts as stopped."""
    for name, pipe in watched.pipes.items():
        alarms.add(
            f"PipeStopped{name}",
            watched.ours.pipe_running(name),
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
