"""Alarms, the topics that they are sent to, the dashboard, and what watches the Pipes."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Aws, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_pipes as pipes
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import alarms
from infra.alarms import PIPE_RUNNING, Alarm
from infra.constructs.dashboard import Dashboard, SavedDemandQuery
from infra.constructs.log_group import log_group
from infra.constructs.nag import accept_each
from infra.constructs.watched import Watched
from infra.context import Context


class Observability(Construct):
    """The alarms of `infra.alarms`, the dashboard, and the saved query for demand."""

    def __init__(self, scope: Construct, id: str, *, context: Context, watched: Watched) -> None:
        super().__init__(scope, id)
        self._watched = watched
        self.alarms: list[cloudwatch.Alarm] = []
        self._topics: list[sns.ITopic] = []
        """Topics that hear of every alarm and of its end: one for `alarm_email`, and `alarm_topic_arn`."""
        if context.alarm_email:
            self._topics.append(mail_topic(self, "Alarms", context.alarm_email, sender="cloudwatch.amazonaws.com"))
        if context.alarm_topic_arn:
            self._topics.append(sns.Topic.from_topic_arn(self, "GivenTopic", context.alarm_topic_arn))
        if context.size != "small":
            PipeWatch(self, "PipeWatch", context=context, watched=watched.pipes)
        for alarm in alarms.alarms(usd_per_hour=context.spend_per_hour, size=context.size, files=context.files):
            for name in getattr(watched, alarm.each) if alarm.each else [""]:
                self.alarms.append(self._add(alarm, name))
        version = watched.alias.version.version
        brakes = alarms.BRAKES if context.steps != "all-at-once" else ()
        self.brakes = [self._add(alarm, "", alarm_name=f"{context.name}-{alarm.id}-{version}") for alarm in brakes]
        """Alarms that stop the rollout of a new version; each version has its own, which begin without a state."""
        SavedDemandQuery(self, "Demand", context=context, log=watched.discovery_log)
        if context.size == "small":
            return
        Dashboard(self, "Dashboard", context=context, watched=watched, alarms=self.alarms)

    def _add(self, alarm: Alarm, name: str, *, alarm_name: str | None = None) -> cloudwatch.Alarm:
        above, below = (
            cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
        )
        missing = cloudwatch.TreatMissingData
        threshold = alarm.under if alarm.over is None else alarm.over
        assert threshold is not None  # noqa: S101 - one of the two is given
        made = cloudwatch.Alarm(
            self,
            f"{alarm.id}{name}",
            alarm_name=alarm_name,
            metric=self._watched.metric(alarm.metric, each=alarm.each, name=name),
            threshold=threshold,
            comparison_operator=below if alarm.over is None else above,
            datapoints_to_alarm=alarm.periods[0],
            evaluation_periods=alarm.periods[1],
            treat_missing_data=missing.BREACHING if alarm.missing_is_bad else missing.NOT_BREACHING,
            alarm_description=f'{alarm.means.format(name=name)} What to do: docs/runbook.md, "{alarm.section}".',
        )
        for topic in self._topics:
            made.add_alarm_action(actions.SnsAction(topic))
            made.add_ok_action(actions.SnsAction(topic))
        return made


class PipeWatch(Construct):
    """Writes the metric `PipeRunning` for each Pipe.

    AWS stops a Pipe that fails for long, with the reason in its state. There is no metric of that state and no event of
    its change, and a stopped Pipe has no failures to alarm on, like an idle one. So the state is polled: an express
    state machine without code describes each Pipe and writes 1 or 0. If the state machine fails, the metric is missing,
    which the alarm treats as stopped.
    """

    def __init__(self, scope: Construct, id: str, *, context: Context, watched: Mapping[str, pipes.CfnPipe]) -> None:
        super().__init__(scope, id)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
            inline_policies={"watch": iam.PolicyDocument(statements=_statements(context.name, watched))},
        )
        metrics = "PutMetricData knows no resources, the condition narrows it to our namespace"
        accept_each(role, {"IAM5[Resource::*]": f"{metrics}; log delivery and tracing know none either"})
        machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_type=sfn.StateMachineType.EXPRESS,
            definition_body=sfn.DefinitionBody.from_string(
                Stack.of(self).to_json_string(definition(context.name, watched))
            ),
            role=role,
            timeout=Duration.minutes(1),
            tracing_enabled=True,
            logs=sfn.LogOptions(destination=log_group(self, "Log", context=context), level=sfn.LogLevel.ALL),
        )
        events.Rule(
            self,
            "Schedule",
            schedule=events.Schedule.rate(Duration.minutes(5)),
            targets=[targets.SfnStateMachine(machine)],
        )


def definition(namespace: str, watched: Mapping[str, pipes.CfnPipe]) -> dict[str, Any]:
    """The state machine in Amazon States Language: a branch for each Pipe."""
    return {
        "QueryLanguage": "JSONata",
        "StartAt": "Each",
        "States": {
            "Each": {"Type": "Parallel", "End": True, "Branches": [_branch(namespace, *one) for one in watched.items()]}
        },
    }


def _branch(namespace: str, name: str, pipe: pipes.CfnPipe) -> dict[str, Any]:
    running = "{% $states.input.CurrentState = 'RUNNING' ? 1 : 0 %}"
    measured = {"MetricName": PIPE_RUNNING, "Dimensions": [{"Name": "pipe", "Value": name}], "Value": running}
    return {
        "StartAt": f"Describe{name}",
        "States": {
            f"Describe{name}": {
                "Type": "Task",
                "Resource": f"arn:{Aws.PARTITION}:states:::aws-sdk:pipes:describePipe",
                "Arguments": {"Name": pipe.ref},
                "Next": f"Measure{name}",
            },
            f"Measure{name}": {
                "Type": "Task",
                "Resource": f"arn:{Aws.PARTITION}:states:::aws-sdk:cloudwatch:putMetricData",
                "Arguments": {"Namespace": namespace, "MetricData": [measured]},
                "End": True,
            },
        },
    }


def _statements(namespace: str, watched: Mapping[str, pipes.CfnPipe]) -> list[iam.PolicyStatement]:
    return [
        iam.PolicyStatement(actions=["pipes:DescribePipe"], resources=[pipe.attr_arn for pipe in watched.values()]),
        iam.PolicyStatement(
            actions=["cloudwatch:PutMetricData"],
            resources=["*"],
            conditions={"StringEquals": {"cloudwatch:namespace": namespace}},
        ),
    ]


def mail_topic(scope: Construct, id: str, email: str, *, sender: str = "") -> sns.Topic:
    """A topic that a service of AWS sends to, or only who has a role for it.

    Encrypted with a customer managed key, because another service may not use the AWS managed one of SNS.
    """
    key = kms.Key(scope, f"{id}Key", enable_key_rotation=True, removal_policy=RemovalPolicy.DESTROY)
    topic = sns.Topic(scope, id, master_key=key, enforce_ssl=True)
    if sender:
        ours = {"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}}
        service = iam.ServicePrincipal(sender, conditions=ours)
        key.grant(service, "kms:Decrypt", "kms:GenerateDataKey*")
        topic.grant_publish(service)
    topic.add_subscription(subscriptions.EmailSubscription(email))
    return topic
