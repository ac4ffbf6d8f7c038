"""Metrics, and every alarm: what it watches, when it is raised, its texts; without the CDK."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mats.domain.learning.outcome import Event
from mats.domain.profile.profile import ChangeResult
from mats.domain.search.trace import DEGRADABLE_PARTS, STAGES
from mats.domain.search.verdict import Verdict
from mats.edge.observers import SLOW_MS, change_metric

HOPS = ("Rule", "Enrichment", "Learning", "ReportRule", "Registry", "Trust", "Outcomes")
"""Hops with a queue of dead letters."""
UNHEALTHY = "Unhealthy"
_COLD = "ColdStart"  # Also by the name of the function
_USAGE = ("InputTokens", "OutputTokens", "Usd")
OWN: Mapping[str, tuple[str, ...]] = {
    "discovery": (
        *("Answers", "Failed", "Degraded"),
        *(f"Degraded{part.capitalize()}" for part in DEGRADABLE_PARTS),
        *(f"Verdict{verdict.capitalize()}" for verdict in Verdict),
        *(f"{stage.capitalize()}Ms" for stage in (*STAGES, "namespaces", "implied-step", "seniority", "total")),
        *_USAGE,
        UNHEALTHY,
        _COLD,
    ),
    "enrichment": (*map(change_metric, ChangeResult), *_USAGE, UNHEALTHY, _COLD),
    "feedback": ("Feedback", "Failed", *(f"Outcomes{event.capitalize()}" for event in Event), _COLD),
    "learning": (_COLD,),
    "maintenance": (_COLD,),
}
"""The metrics that functions write themselves, but for those of refusals, which have a model as dimension."""
_FEW = 3  # Fewer errors or degraded answers in five minutes raise no alarm
_OLDEST_S = 15 * 60
_ACCOUNT_PERCENT = 80  # Of the account's concurrent executions


class Metric(NamedTuple):
    """A metric of a watched resource.

    `source` is the name of the resource in `Watched`, `own.` and the name of the function that writes the metric
    itself, `account` for all functions of the account, or `each` for the queue that the alarm is repeated for.
    Those of `version.` and the name of a function are of the version that is deployed.
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


USED_STORAGE = Expression(
    "100 * used / (free + used)",
    # megabytes written once a minute, so only a period of a minute sums the nodes and not the minutes
    {
        "free": Metric("domain", "FreeStorageSpace", "Sum", 1),
        "used": Metric("domain", "ClusterUsedSpace", "Maximum", 1),
    },
    "used storage",
    1,
)
"""Used storage of the whole domain in percent, whatever its size."""
_CALLS = Metric("stage", "Count")
USD = {name: Metric(f"own.{name}", "Usd") for name in ("discovery", "enrichment")}
"""Dollars spent on models, by function."""


_TEXTS: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("alarms.json").read_text("utf-8"))


class Alarm(NamedTuple):
    """Raised if the metric is over its threshold in `periods[0]` of the last `periods[1]` periods.

    What is wrong then, and the section of docs/runbook.md about it, are in alarms.json.
    """

    id: str
    metric: Metric | Expression
    over: float
    periods: tuple[int, int] = (1, 1)
    each: bool = False  # For each queue of dead letters

    def means(self, name: str) -> str:
        """The description of the alarm for the resource `name`, for each of which it is repeated."""
        texts, values = _TEXTS[self.id], {"over": self.over, "minutes": _OLDEST_S // 60, "percent": _ACCOUNT_PERCENT}
        return f'{texts["means"].format(name=name, **values)} What to do: docs/runbook.md, "{texts["section"]}".'


_ALL = Metric("own.discovery", "Answers")
_DEGRADED = share("degraded", Metric("own.discovery", "Degraded"), _ALL, label="degraded", at_least=_FEW)
_ERRORS = share("errors", Metric("stage", "5XXError"), _CALLS, label="errors", at_least=_FEW)
_REFUSED = share("refused", Metric("stage", "4XXError"), _CALLS, label="4xx", at_least=50)
_REFUSALS = total(
    {"reranking": Metric("own.discovery", "ModelRefused"), "writing": Metric("own.enrichment", "ModelRefused")},
    label="refused",
)
_REJECTED = total(
    {
        "searches": Metric("domain", "ThreadpoolSearchRejected", "Maximum"),
        "writes": Metric("domain", "ThreadpoolWriteRejected", "Maximum"),
    },
    each="DIFF({})",  # they count since the start of a node
    label="rejected",
)
_SPENT = total({name: metric._replace(minutes=60) for name, metric in USD.items()}, label="dollars", minutes=60)
_CLAIMED = Metric("account", "ClaimedAccountConcurrency", "Maximum")
_DEAD = Metric("each", "ApproximateNumberOfMessagesVisible", "Maximum")
_WAITING = Metric("queue", "ApproximateAgeOfOldestMessage", "Maximum")
_LATE = Metric("streams", "IteratorAge", "Maximum")


def _domain(name: str, minutes: int = 1) -> Metric:
    return Metric("domain", name, "Maximum", minutes)


_ANSWERS = (
    Alarm("DiscoverySlow", Metric("own.discovery", "TotalMs", "p99"), SLOW_MS, periods=(3, 5)),
    Alarm("DiscoveryCrashing", Metric("discovery", "Errors", minutes=1), _FEW),
    Alarm("DiscoveryDegraded", _DEGRADED, 20, periods=(3, 3)),
    Alarm("FeedbackFailing", Metric("feedback", "Errors"), _FEW),
    Alarm("DiscoveryFailing", _ERRORS, 1, periods=(2, 3)),
    Alarm("CallsRefused", _REFUSED, 25, periods=(3, 3)),
    Alarm("DiscoveryThrottled", Metric("discovery", "Throttles"), 0, periods=(2, 3)),
    Alarm("ConcurrencyHigh", _CLAIMED, _ACCOUNT_PERCENT * 10, periods=(3, 3)),
    Alarm("ModelRefused", _REFUSALS, 0),
)
_CHANGES = (
    Alarm("DeadLetters", _DEAD, 0, each=True),
    Alarm("ChangesWaiting", _WAITING, _OLDEST_S, periods=(3, 3)),
    Alarm("EnrichmentFailing", Metric("enrichment", "Errors"), 0, periods=(3, 3)),
    Alarm("LearningFailing", Metric("learning", "Errors"), 0, periods=(3, 3)),
    Alarm("EnrichmentThrottled", Metric("enrichment", "Throttles"), 0, periods=(3, 3)),
    Alarm("MaintenanceFailing", Metric("maintenance", "ExecutionsFailed"), 0),
    Alarm("StreamsFailing", Metric("streams", "Errors"), 0, periods=(2, 3)),
    Alarm("StreamsLate", _LATE, _OLDEST_S * 1000, periods=(3, 3)),
)
_INDEX = (
    Alarm("IndexRed", _domain("ClusterStatus.red"), 0),
    Alarm("IndexYellow", _domain("ClusterStatus.yellow"), 0, periods=(30, 30)),
    Alarm("IndexWritesBlocked", _domain("ClusterIndexWritesBlocked"), 0, periods=(5, 5)),
    Alarm("IndexSnapshotFailing", _domain("AutomatedSnapshotFailure"), 0),
    Alarm("IndexBusy", _domain("CPUUtilization", minutes=5), 80, periods=(3, 3)),
    Alarm("IndexRejecting", _REJECTED, 0, periods=(2, 3)),
    Alarm("IndexStorageLow", USED_STORAGE, 75, periods=(10, 15)),
    Alarm("IndexMemoryPressure", _domain("JVMMemoryPressure"), 95, periods=(3, 3)),
)
BRAKES = {
    function: (
        Alarm(f"{new}Unhealthy", Metric(f"version.{function}", UNHEALTHY, "Average", 1), 0.2, periods=(2, 2)),
        Alarm(f"{new}Crashing", Metric(f"version.{function}", "Errors", minutes=1), 0, periods=(2, 2)),
    )
    for function, new in {"discovery": "NewVersion", "enrichment": "NewEnrichment"}.items()
}
"""By function, what stops the rollout of a new version. They watch what the version writes, not the API: it depends on
the moved alias."""

FEW = ("DiscoveryCrashing", "DiscoveryFailing", "DeadLetters", "ChangesWaiting", "MaintenanceFailing")
"""The alarms of a small deployment: what asks for a person, and needs no metric of our own."""


def alarms(*, usd_per_hour: int, few: bool = False) -> tuple[Alarm, ...]:
    """Every alarm, or the few of a small deployment; one on the cost of models if there is a limit."""
    spent = Alarm("SpendHigh", _SPENT, usd_per_hour)
    every = (*_ANSWERS, *((spent,) if usd_per_hour else ()), *_CHANGES, *_INDEX)
    return tuple(alarm for alarm in every if alarm.id in FEW) if few else every


def charged_metrics(*, usd_per_hour: int, few: bool = False) -> int:
    """The metrics in alarms: CloudWatch charges each of them."""
    return sum(
        (len(HOPS) if alarm.each else 1) * (len(alarm.metric.metrics) if isinstance(alarm.metric, Expression) else 1)
        for alarm in alarms(usd_per_hour=usd_per_hour, few=few)
    )
