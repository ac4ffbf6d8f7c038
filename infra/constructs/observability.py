"""Alarms, the topics that they are sent to, and the dashboard."""

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra import alarms
from infra.alarms import Alarm
from infra.constructs.dashboard import Dashboard
from infra.constructs.watched import Watched
from infra.queries import saved_queries


class Observability(Construct):
    """The alarms of `infra.alarms`, the dashboard, and the saved queries of `infra.queries`."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        watched: Watched,
        alarm_to: str = "",  # An address, or the ARN of a topic
        usd_per_hour: int = 0,  # That models may cost before an alarm
        few: bool = False,  # True: the alarms that ask for a person, and no dashboard
        brakes: bool = False,  # True: alarms that stop the rollout of a new version
        hashed: bool = False,  # True: logs have hashes in place of what callers asked
    ) -> None:
        super().__init__(scope, id)
        self._watched, name = watched, watched.name
        self.alarms: list[cloudwatch.Alarm] = []
        self._topic: sns.ITopic | None = None  # It hears of every alarm and of its end
        if alarm_to:
            self._topic = _topic(self, alarm_to)
        for alarm in alarms.alarms(usd_per_hour=usd_per_hour, few=few):
            for hop in watched.dead_letter_queues if alarm.each else [""]:
                self.alarms.append(self._add(alarm, hop))
        self.brakes = {
            function: [self._add(alarm, "", version=watched.aliases[function].version.version) for alarm in stopping]
            for function, stopping in (alarms.BRAKES if brakes else {}).items()
        }
        """Alarms that stop the rollout of a new version; each version has its own, which begin without a state."""
        for query, saved in saved_queries(hashed=hashed).items():
            logs.CfnQueryDefinition(
                self,
                f"Query{query.capitalize()}",
                name=f"{name}/{query}",
                log_group_names=[watched.logs[saved.function].log_group_name],
                query_string="\n| ".join(saved.lines),
            )
        if not few:
            Dashboard(self, "Dashboard", hashed=hashed, watched=watched, alarms=self.alarms)

    def _add(self, alarm: Alarm, name: str, *, version: str = "") -> cloudwatch.Alarm:
        made = cloudwatch.Alarm(
            self,
            f"{alarm.id}{name}",
            alarm_name=f"{self._watched.name}-{alarm.id}-{version}" if version else None,
            metric=self._watched.metric(alarm.metric, name=name),
            threshold=alarm.over,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            datapoints_to_alarm=alarm.periods[0],
            evaluation_periods=alarm.periods[1],
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=alarm.means(name),
        )
        if self._topic:
            made.add_alarm_action(actions.SnsAction(self._topic))
            made.add_ok_action(actions.SnsAction(self._topic))
        return made


def _topic(scope: Construct, to: str) -> sns.ITopic:
    """The topic with this ARN, or one that sends mails to this address.

    Encrypted with a customer managed key, because another service may not use the AWS managed one of SNS.
    """
    if to.startswith("arn:"):
        return sns.Topic.from_topic_arn(scope, "GivenTopic", to)
    key = kms.Key(scope, "AlarmsKey", enable_key_rotation=True, removal_policy=RemovalPolicy.DESTROY)
    topic = sns.Topic(scope, "Alarms", master_key=key, enforce_ssl=True)
    ours = {"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}}
    service = iam.ServicePrincipal("cloudwatch.amazonaws.com", conditions=ours)
    key.grant(service, "kms:Decrypt", "kms:GenerateDataKey*")
    topic.grant_publish(service)
    topic.add_subscription(subscriptions.EmailSubscription(to))
    return topic
