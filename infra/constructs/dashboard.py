"""The CloudWatch dashboard."""

from collections.abc import Mapping, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.alarms import USD, USED_STORAGE, Expression, Metric, share
from infra.constructs.watched import Watched
from infra.queries import saved_queries
from mats.domain.learning.outcome import Event
from mats.domain.profile.profile import ChangeResult
from mats.domain.search.trace import DEGRADABLE_PARTS, STAGES
from mats.domain.search.verdict import Verdict
from mats.edge.observers import change_metric

_HALF, _THIRD, _FULL = 12, 8, 24
_GOOD = (
    "**Is discovery good today?** Yes, if no alarm is red, answers are rarely degraded, the share of `match` is what "
    "it was last week, and p99 stays under 3.5 s. What each alarm means: `docs/runbook.md`."
)
Metrics = Mapping[str, Metric | Expression]  # By their labels; an empty one: as AWS labels it


def _own(function: str, *names: str, statistic: str = "Sum", prefix: str = "", suffix: str = "") -> Metrics:
    """Metrics that a function writes, labelled by their names in lower case without prefix and suffix."""
    return {name.lower(): Metric(f"own.{function}", f"{prefix}{name}{suffix}", statistic) for name in names}


class Dashboard(Construct):
    """From top to bottom: answers, changes, index."""

    def __init__(
        self, scope: Construct, id: str, *, hashed: bool, watched: Watched, alarms: Sequence[cloudwatch.IAlarm]
    ) -> None:
        super().__init__(scope, id)
        self._watched = watched
        page = cloudwatch.Dashboard(self, "Page", period_override=cloudwatch.PeriodOverride.AUTO)
        page.add_widgets(cloudwatch.TextWidget(markdown=_GOOD, width=_FULL, height=2))
        page.add_widgets(cloudwatch.AlarmStatusWidget(alarms=list(alarms), title="Alarms", width=_FULL, height=3))
        page.add_widgets(*self._answers())
        page.add_widgets(*self._latency())
        page.add_widgets(*self._costs_and_errors())
        unserved = cloudwatch.LogQueryWidget(
            title="Asked and not found",
            log_group_names=[watched.logs["discovery"].log_group_name],
            query_lines=list(saved_queries(hashed=hashed)["unserved"].lines),
            view=cloudwatch.LogQueryVisualizationType.TABLE,
            width=_HALF,
        )
        reported = _own("feedback", *map(str.capitalize, Event), prefix="Outcomes")
        page.add_widgets(unserved, self._graph("Outcomes that callers report", reported, stacked=True))
        page.add_widgets(*self._changes())
        if "domain" in watched.resources:
            page.add_widgets(*self._index())

    def _graph(
        self,
        title: str,
        left: Metrics | Sequence[cloudwatch.IMetric],
        *,
        right: Metrics | Sequence[cloudwatch.IMetric] | None = None,
        width: int = _THIRD,
        stacked: bool | None = None,
    ) -> cloudwatch.IWidget:
        sides = [
            [self._watched.metric(metric, label=label or None) for label, metric in side.items()]
            if isinstance(side, Mapping)
            else side
            for side in (left, right)
        ]
        return cloudwatch.GraphWidget(title=title, left=sides[0], right=sides[1], width=width, stacked=stacked)

    def _answers(self) -> Sequence[cloudwatch.IWidget]:
        answers = Metric("own.discovery", "Answers")
        calls = {
            "calls": Metric("stage", "Count"),
            "answers": answers,
            "4xx": Metric("stage", "4XXError"),
            "5xx": Metric("stage", "5XXError"),
            "failed by a dependency": Metric("own.discovery", "Failed"),
        }
        labels = {"Degraded": "any"} | {f"Degraded{part.capitalize()}": part for part in DEGRADABLE_PARTS}
        degraded = {
            label: share(name[0].lower() + name[1:], Metric("own.discovery", name), answers, label=label)
            for name, label in labels.items()
        }
        verdicts = _own("discovery", *map(str.capitalize, Verdict), prefix="Verdict")
        return (
            self._graph("Calls", calls),
            self._graph("Verdicts", verdicts, stacked=True),
            self._graph("Degraded answers by what they lack, %", degraded),
        )

    def _latency(self) -> Sequence[cloudwatch.IWidget]:
        percentiles = {each: Metric("own.discovery", "TotalMs", each) for each in ("p50", "p90", "p99")}
        stages = {
            each: _own("discovery", *map(str.capitalize, STAGES), suffix="Ms", statistic=each).items()
            for each in ("p50", "p99")
        }
        return (
            self._graph("Latency of an answer, ms", percentiles, width=_HALF),
            self._graph(
                "Latency by stage, p50 left and p99 right, ms",
                dict(stages["p50"]),
                right={f"{label} p99": metric for label, metric in stages["p99"]},
                width=_HALF,
            ),
        )

    def _costs_and_errors(self) -> Sequence[cloudwatch.IWidget]:
        tokens = {
            f"{function} {kind.lower()}": Metric(f"own.{function}", f"{kind}Tokens")
            for function in USD
            for kind in ("Input", "Output")
        }
        per_day = {
            f"{name}, at this rate a day": Expression(f"{name} * 288", {name: metric}, "")
            for name, metric in USD.items()
        }
        dollars = [self._watched.metric(metric) for metric in USD.values()]
        failures = {
            f"{function} {label}": Metric(function, name)
            for function in ("discovery", "streams", "enrichment", "feedback", "learning")
            for label, name in {"errors": "Errors", "throttled": "Throttles"}.items()
        }
        return (
            self._graph("Tokens", tokens, stacked=True),
            self._graph("Dollars of models", dollars, right=per_day),
            self._graph("Functions", failures),
        )

    def _changes(self) -> Sequence[cloudwatch.IWidget]:
        watched = self._watched
        dead = Metric("each", "ApproximateNumberOfMessagesVisible", "Maximum")
        return (
            self._graph("Changes by outcome", _own("enrichment", *map(change_metric, ChangeResult)), stacked=True),
            self._graph(
                "Age of the oldest change, s; given up on the right",
                {"age": Metric("queue", "ApproximateAgeOfOldestMessage", "Maximum")},
                right=[watched.metric(dead, name=name, label=name) for name in watched.dead_letter_queues],
            ),
            self._graph(
                "Age of what is read from the tables' streams, ms", {"": Metric("streams", "IteratorAge", "Maximum")}
            ),
        )

    def _index(self) -> Sequence[cloudwatch.IWidget]:
        load: Metrics = {
            "processors": Metric("domain", "CPUUtilization", "Maximum"),
            "heap": Metric("domain", "JVMMemoryPressure", "Maximum"),
            "used storage": USED_STORAGE,
        }
        return (
            self._graph("Search latency, ms", {"": Metric("domain", "SearchLatency", "p99")}),
            self._graph("Load of the domain, %", load),
            self._graph("Documents", {"": Metric("domain", "SearchableDocuments", "Maximum")}),
        )
