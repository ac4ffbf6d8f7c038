"""Checks every five minutes whether the Pipes run."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_pipes as pipes
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.alarms import PIPE_RUNNING
from infra.constructs.log_group import log_group
from infra.constructs.nag import accept_each
from infra.context import Context


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
