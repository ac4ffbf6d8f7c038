"""Metrics, and every alarm: what it watches, when it is raised, its section in docs/runbook.md; without the CDK."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mats.domain.learning.outcome import Event
from mats.domain.profile.profile import ChangeResult
from mats.domain.ranking.blend import Verdict
from mats.domain.shortlist.trace import STAGES, DegradablePart
from mats.edge.observers import SLOW_MS, change_metric

HOPS = ("Rule", "Enrichment", "Learning", "ReportRule", "Registry", "Trust", "Outcomes")
"""Hops with a queue of dead letters."""
UNHEALTHY, MODEL_DAYS = "Unhealthy", "ModelDaysLeft"
_USAGE = ("InputTokens", "OutputTokens", "Usd")
OWN: Mapping[str, tuple[str, ...]] = {
    "discovery": (
        *("Answers", "Failed", "Degraded"),
        *(f"Degraded{part.capitalize()}" for part in DegradablePart),
        *(f"Verdict{verdict.capitalize()}" for verdict in Verdict),
        *(f"{stage.capitalize()}Ms" for stage in (*STAGES, "namespaces", "reported", "total")),
        *_USAGE,
        UNHEALTHY,
    ),
    "enrichment": (*map(change_metric, ChangeResult), *_USAGE),
    "feedback": ("Feedback", "Failed", *(f"Outcomes{event.capitalize()}" for event in Event)),
}
"""The metrics that functions write themselves, but for those of refusals, which have a model as dimension."""
_FEW = 3  # Fewer errors or degraded answers in five minutes raise no alarm
_OLDEST_S = 15 * 60
_ACCOUNT_PERCENT = 80  # Of the account's concurrent executions


class Metric(NamedTuple):
    """A metric of a watched resource.

    `source` is the name of the resource in `Watched`, `own.` and the name of the function that writes the metric
    itself, `account` for all functions of the account, or `each` for the resource that the alarm is repeated for.
    Those of discovery by `version` are of the version that is deployed.
    """

    source: str
    name: str
    statistic: str = "Sum"
    minutes: int = 5


class Expression(NamedTuple):
    """A mathematical expression over metrics by name; CloudWatch charges an alarm once for each of them."""

    text: str
    metrics: Mapping[str, Metric]
    label: str
    minutes: int = 5


def share(name: str, part: Metric, whole: Metric, *, label: str, at_least: int = 0) -> Expression:
    """Part of whole in percent; 0 if the part is below `at_least`, which is too few to be significant.

    The name is that of the part in the expression: a graph must not use one for two metrics.
    """
    return Expression(f"IF({name} >= {at_least}, 100 * {name} / whole, 0)", {name: part, "whole": whole}, label)


def total(metrics: Mapping[str, Metric], *, label: str, each: str = "{}", minutes: int = 5) -> Expression:
    """The sum of metrics; `each` is an expression of one of them."""
    return Expression(" + ".join(f"FILL({each.format(name)}, 0)" for name in metrics), metrics, label, minutes)


FREE_STORAGE = Expression(
    "100 * free / (free + used)",
    # megabytes written once a minute, so only a period of a minute sums the nodes and not the minutes
    {
        "free": Metric("domain", "FreeStorageSpace", "Sum", 1),
        "used": Metric("domain", "ClusterUsedSpace", "Maximum", 1),
    },
    "free storage",
    1,
)
"""Free storage of the whole domain in percent, whatever its size."""
_CALLS = Metric("stage", "Count")
USD = {name: Metric(f"own.{name}", "Usd") for name in ("discovery", "enrichment")}
"""Dollars spent on models, by function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Raised if the metric is over or under its threshold in `periods[0]` of the last `periods[1]` periods."""

    id: str
    metric: Metric | Expression
    over: float | None = None
    under: float | None = None
    periods: tuple[int, int] = (1, 1)
    means: str  # `{name}` is the name of the resource that the alarm is repeated for
    section: str
    each: str = ""  # The resources of `Watched` that have one such alarm each: `dead_letter_queues`


_ANSWERS = (
    Alarm(
        id="DiscoverySlow",
        metric=Metric("own.discovery", "TotalMs", "p99"),
        over=SLOW_MS,
        periods=(3, 5),
        means="One answer in a hundred takes longer than all budgets together.",
        section="Discovery is slow",
    ),
    Alarm(
        id="DiscoveryCrashing",
        metric=Metric("discovery", "Errors", minutes=1),
        over=_FEW,
        means="The discovery function crashes or times out.",
        section="Discovery fails",
    ),
    Alarm(
        id="DiscoveryDegraded",
        metric=share(
            "degraded",
            Metric("own.discovery", "Degraded"),
            Metric("own.discovery", "Answers"),
            label="degraded",
            at_least=_FEW,
        ),
        over=20,
        periods=(3, 3),
        means="More than 20 % of answers lack a signal: they come, but are ranked worse.",
        section="Answers are degraded",
    ),
    Alarm(
        id="FeedbackFailing",
        metric=Metric("feedback", "Errors"),
        over=_FEW,
        means="The feedback function crashes or times out: callers cannot report outcomes.",
        section="Feedback fails",
    ),
    Alarm(
        id="DiscoveryFailing",
        metric=share("errors", Metric("stage", "5XXError"), _CALLS, label="errors", at_least=_FEW),
        over=1,
        periods=(2, 3),
        means="More than 1 % of calls to the API get a 5xx.",
        section="Discovery fails",
    ),
    Alarm(
        id="CallsRefused",
        metric=share("refused", Metric("stage", "4XXError"), _CALLS, label="4xx", at_least=50),
        over=25,
        periods=(3, 3),
        means="More than 25 % of calls to the API get a 4xx: a client is wrong, or probing.",
        section="Calls are refused",
    ),
    Alarm(
        id="DiscoveryThrottled",
        metric=Metric("discovery", "Throttles"),
        over=0,
        periods=(2, 3),
        means="Calls find no free execution environment and get a 5xx: a limit on concurrency is too low.",
        section="Functions are throttled",
    ),
    Alarm(
        id="ConcurrencyHigh",
        metric=Metric("account", "ClaimedAccountConcurrency", "Maximum"),
        over=_ACCOUNT_PERCENT * 10,
        periods=(3, 3),
        means=f"The account uses {_ACCOUNT_PERCENT} % of 1,000 concurrent executions, the limit unless AWS raised it.",
        section="Functions are throttled",
    ),
    Alarm(
        id="ModelRefused",
        metric=total(
            {"reranking": Metric("own.discovery", "ModelRefused"), "writing": Metric("own.enrichment", "ModelRefused")},
            label="refused",
        ),
        over=0,
        means="Bedrock refuses a model for good; the log names the model and the cause.",
        section="A model is refused",
    ),
)
_CHANGES = (
    Alarm(
        id="DeadLetters",
        metric=Metric("each", "ApproximateNumberOfMessagesVisible", "Maximum"),
        over=0,
        means="Changes were given up at the hop {name}: these capabilities are out of date until redriven.",
        section="Dead letters",
        each="dead_letter_queues",
    ),
    Alarm(
        id="ChangesWaiting",
        metric=Metric("queue", "ApproximateAgeOfOldestMessage", "Maximum"),
        over=_OLDEST_S,
        periods=(3, 3),
        means=f"A change has waited longer than {_OLDEST_S // 60} minutes for enrichment.",
        section="Changes wait",
    ),
    Alarm(
        id="EnrichmentFailing",
        metric=Metric("enrichment", "Errors"),
        over=0,
        periods=(3, 3),
        means="The enrichment function crashes or times out: its changes are tried again, then given up.",
        section="Enrichment fails",
    ),
    Alarm(
        id="LearningFailing",
        metric=Metric("learning", "Errors"),
        over=0,
        periods=(3, 3),
        means="The learning function crashes or times out: what callers report does not change answers.",
        section="Learning fails",
    ),
    Alarm(
        id="EnrichmentThrottled",
        metric=Metric("enrichment", "Throttles"),
        over=0,
        periods=(3, 3),
        means="Batches of changes find no free execution environment: a limit on concurrency is too low.",
        section="Functions are throttled",
    ),
    Alarm(
        id="MaintenanceFailing",
        metric=Metric("maintenance", "ExecutionsFailed"),
        over=0,
        means="A repair, reindex or backfill gave up: what was lost stays lost until the next night's repair.",
        section="Maintenance fails",
    ),
    Alarm(
        id="ModelEnds",
        metric=Metric("own.models", MODEL_DAYS, "Minimum", minutes=24 * 60),
        under=60,
        means="Bedrock offers a model for less than 60 days more, or to former customers only.",
        section="A model ends",
    ),
    Alarm(
        id="StreamsFailing",
        metric=Metric("streams", "Errors"),
        over=0,
        periods=(2, 3),
        means="Changes do not get from the tables' streams to the bus: they come late.",
        section="Streams are not read",
    ),
    Alarm(
        id="StreamsLate",
        metric=Metric("streams", "IteratorAge", "Maximum"),
        over=_OLDEST_S * 1000,
        periods=(3, 3),
        means=f"A change has been in its stream for {_OLDEST_S // 60} minutes; after 24 hours it is gone.",
        section="Streams are not read",
    ),
)
_INDEX = (
    Alarm(
        id="IndexRed",
        metric=Metric("domain", "ClusterStatus.red", "Maximum", 1),
        over=0,
        means="Part of the index is missing: answers fail or are incomplete.",
        section="The index is red",
    ),
    Alarm(
        id="IndexYellow",
        metric=Metric("domain", "ClusterStatus.yellow", "Maximum", 1),
        over=0,
        periods=(30, 30),
        means="Copies of the index are missing for half an hour: nothing is lost, but one more failure would be.",
        section="The index is yellow",
    ),
    Alarm(
        id="IndexWritesBlocked",
        metric=Metric("domain", "ClusterIndexWritesBlocked", "Maximum", 1),
        over=0,
        periods=(5, 5),
        means="The domain takes no writes, for want of storage or memory: changes wait.",
        section="Writes are blocked",
    ),
    Alarm(
        id="IndexSnapshotFailing",
        metric=Metric("domain", "AutomatedSnapshotFailure", "Maximum", 1),
        over=0,
        means="No automatic snapshot was taken. The index can still be made again from Profiles.",
        section="The index is yellow",
    ),
    Alarm(
        id="IndexBusy",
        metric=Metric("domain", "CPUUtilization", "Maximum"),
        over=80,
        periods=(3, 3),
        means="A data node is more than 80 % busy for a quarter of an hour.",
        section="The domain is too small",
    ),
    Alarm(
        id="IndexRejecting",
        metric=total(
            {
                "searches": Metric("domain", "ThreadpoolSearchRejected", "Maximum"),
                "writes": Metric("domain", "ThreadpoolWriteRejected", "Maximum"),
            },
            each="DIFF({})",  # they count since the start of a node
            label="rejected",
        ),
        over=0,
        periods=(2, 3),
        means="The domain rejects searches or writes because its queues are full.",
        section="The domain is too small",
    ),
    Alarm(
        id="IndexStorageLow",
        metric=FREE_STORAGE,
        under=25,
        periods=(10, 15),
        means="Less than 25 % of the domain's storage is free.",
        section="Storage runs out",
    ),
    Alarm(
        id="IndexMemoryPressure",
        metric=Metric("domain", "JVMMemoryPressure", "Maximum", 1),
        over=95,
        periods=(3, 3),
        means="The heap of a node is more than 95 % full: it may soon refuse calls.",
        section="Memory pressure",
    ),
)

BRAKES = (
    Alarm(
        id="NewVersionUnhealthy",
        metric=Metric("version", UNHEALTHY, "Average", 1),
        over=0.2,
        periods=(2, 2),
        means="More than 20 % of the calls of the new version fail, are slow or lack a signal.",
        section="A new version is turned back",
    ),
    Alarm(
        id="NewVersionCrashing",
        metric=Metric("version", "Errors", minutes=1),
        over=0,
        periods=(2, 2),
        means="The new version of discovery crashes or times out.",
        section="A new version is turned back",
    ),
)
"""Stop the rollout of a new version. They watch what the version writes, not the API: it depends on the moved alias."""


FEW = ("DiscoveryCrashing", "DiscoveryFailing", "DeadLetters", "ChangesWaiting", "MaintenanceFailing")
"""The alarms of a small deployment: what asks for a person, and needs no metric of our own."""


def alarms(*, usd_per_hour: int, size: str = "trial", files: bool = False) -> tuple[Alarm, ...]:
    """Every alarm; one on the cost of models if there is a limit."""
    spent = Alarm(
        id="SpendHigh",
        metric=total({name: metric._replace(minutes=60) for name, metric in USD.items()}, label="dollars", minutes=60),
        over=usd_per_hour,
        means=f"Models cost more than {usd_per_hour} dollars in an hour.",
        section="Models cost too much",
    )
    every = (*_ANSWERS, *((spent,) if usd_per_hour else ()), *_CHANGES, *(() if files else _INDEX))
    return every if size != "small" else tuple(alarm for alarm in every if alarm.id in FEW)


def charged_metrics(*, usd_per_hour: int, size: str = "trial") -> int:
    """The metrics in alarms: CloudWatch charges each of them."""
    return sum(
        (len(HOPS) if alarm.each else 1) * (len(alarm.metric.metrics) if isinstance(alarm.metric, Expression) else 1)
        for alarm in alarms(usd_per_hour=usd_per_hour, size=size, files=size == "small")
    )
