"""Alarms, and the topic that they are sent to."""

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.constructs.mail_topic import mail_topic
from infra.context import Context

_ABOVE = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
_BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
_FINE = cloudwatch.TreatMissingData.NOT_BREACHING


class Alarms:
    """The alarms of a stack, each with its section in docs/runbook.md."""

    def __init__(self, scope: Construct, context: Context) -> None:
        self._scope = scope
        self.all: list[cloudwatch.Alarm] = []
        self.topics: list[sns.ITopic] = []
        """Topics that hear of every alarm and of its end: one for `alarm_email`, and `alarm_topic_arn`."""
        if context.alarm_email:
            self.topics.append(mail_topic(scope, "Alarms", context.alarm_email, sender="cloudwatch.amazonaws.com"))
        if context.alarm_topic_arn:
            self.topics.append(sns.Topic.from_topic_arn(scope, "GivenTopic", context.alarm_topic_arn))

    def add(
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
    ) -> cloudwatch.Alarm:
        """Add an alarm: the metric is over or under its threshold in `periods[0]` of the last `periods[1]` periods."""
        threshold = over if over is not None else under
        assert threshold is not None  # noqa: S101 - one of the two is given
        alarm = cloudwatch.Alarm(
            self._scope,
            id,
            metric=metric,
            threshold=threshold,
            comparison_operator=_ABOVE if over is not None else _BELOW,
            datapoints_to_alarm=periods[0],
            evaluation_periods=periods[1],
            treat_missing_data=missing,
            alarm_description=f'{means} What to do: docs/runbook.md, "{section}".',
        )
        for topic in self.topics:
            alarm.add_alarm_action(actions.SnsAction(topic))
            alarm.add_ok_action(actions.SnsAction(topic))
        self.all.append(alarm)
        return alarm
