"""The state machine of maintenance, and what starts it: a day, a changed stack, an operator."""

from typing import Any

from aws_cdk import Aws, CfnOutput, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.constructs.log_group import log_group
from infra.constructs.nag import accept_each, accept_wildcards
from infra.context import Context

REFILLED_AFTER = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
)
"""States of the stack after which its domain may be a new one. While the old one is deleted, for many minutes, the new
one is in use already; so a refill begins with the cleanup, and once more after it."""
_DAILY = events.Schedule.cron(minute="17", hour="3")
_SENSELESS = ["NotPossible", "RequestInvalid", "ValidationError"]
"""Errors that a repetition does not resolve, by the names of their classes."""


class MaintenanceMachine(Construct):
    """Calls the function with what it returned, until it says that the task is done.

    Two executions at a time do no harm: every piece can be repeated, and of two writes of a revision one is a no-op.
    """

    def __init__(
        self, scope: Construct, id: str, *, context: Context, function: lambda_.IFunction, discovery: lambda_.IFunction
    ) -> None:
        """Run tasks of `function`, and delete old versions of `discovery`."""
        super().__init__(scope, id)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
            inline_policies={
                "run": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn]),
                        iam.PolicyStatement(
                            actions=["lambda:ListVersionsByFunction", "lambda:ListAliases"],
                            resources=[discovery.function_arn],
                        ),
                        iam.PolicyStatement(
                            actions=["lambda:DeleteFunction"], resources=[f"{discovery.function_arn}:*"]
                        ),
                    ]
                )
            },
        )
        accept_each(role, {"IAM5[Resource::*]": "Log delivery and tracing know no resources"})
        declared = discovery.node.default_child
        assert isinstance(declared, lambda_.CfnFunction)  # noqa: S101 - what the construct is made of
        accept_wildcards(
            role,
            [f"<{Stack.of(self).get_logical_id(declared)}.Arn>:*"],
            "Versions have numbers; the function itself has no number, and so cannot be deleted",
        )
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_name=f"{context.name}-maintenance",
            definition_body=sfn.DefinitionBody.from_string(
                Stack.of(self).to_json_string(definition(function.function_arn, discovery.function_name))
            ),
            role=role,
            tracing_enabled=True,
            logs=sfn.LogOptions(destination=log_group(self, "Log", context=context), level=sfn.LogLevel.ALL),
        )
        self._rules()
        CfnOutput(self, "Arn", value=self.machine.state_machine_arn).override_logical_id("MaintenanceMachine")

    def _rules(self) -> None:
        events.Rule(
            self,
            "Daily",
            description="Every night registry, profiles and index are compared, and old versions deleted",
            schedule=_DAILY,
            targets=[self._start("reconcile"), self._start("versions")],
        )
        events.Rule(
            self,
            "Deployed",
            description="A new domain is filled from the profiles",
            event_pattern=events.EventPattern(
                source=["aws.cloudformation"],
                detail_type=["CloudFormation Stack Status Change"],
                detail={"stack-id": [Aws.STACK_ID], "status-details": {"status": list(REFILLED_AFTER)}},
            ),
            targets=[self._start("reconcile")],
        )

    def _start(self, task: str) -> targets.SfnStateMachine:
        return targets.SfnStateMachine(
            self.machine,
            input=events.RuleTargetInput.from_object({"task": task}),
            retry_attempts=185,
            max_event_age=Duration.hours(24),
        )

    @property
    def logical_id(self) -> str:
        """Of the state machine, in the template."""
        declared = self.machine.node.default_child
        assert isinstance(declared, sfn.CfnStateMachine)  # noqa: S101 - what the construct is made of
        return Stack.of(self).get_logical_id(declared)

    def statements(self) -> list[iam.PolicyStatement]:
        """The rights to start, watch and stop tasks."""
        runs = f"arn:{Aws.PARTITION}:states:{Aws.REGION}:{Aws.ACCOUNT_ID}:execution:{self.machine.state_machine_name}:*"
        return [
            iam.PolicyStatement(
                actions=["states:StartExecution", "states:ListExecutions", "states:DescribeStateMachine"],
                resources=[self.machine.state_machine_arn],
            ),
            iam.PolicyStatement(
                actions=["states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution"],
                resources=[runs],
            ),
        ]


def definition(function: str, discovery: str) -> dict[str, Any]:
    """The state machine in Amazon States Language.

    Args:
        function: ARN of the function of maintenance.
        discovery: Name of the function whose old versions the task `versions` deletes.
    """
    return {
        "QueryLanguage": "JSONata",
        "StartAt": "Which",
        "States": {
            "Which": {
                "Type": "Choice",
                "Choices": [{"Condition": "{% $states.input.task = 'versions' %}", "Next": "Aliases"}],
                "Default": "Run",
            },
            **_prune_versions(discovery),
            "Run": {
                **_task("lambda:invoke", {"FunctionName": function, "Payload": "{% $states.input %}"}),
                "Output": "{% $states.result.Payload %}",
                "Next": "Next",
            },
            "Next": {
                "Type": "Choice",
                "Choices": [
                    {"Condition": "{% $states.input.done %}", "Next": "Done"},
                    {"Condition": "{% $states.input.wait_s > 0 %}", "Next": "Pause"},
                ],
                "Default": "Run",
            },
            "Pause": {"Type": "Wait", "Seconds": "{% $states.input.wait_s %}", "Next": "Run"},
            "Done": {"Type": "Succeed"},
        },
    }


KEPT_VERSIONS = 3
"""The newest versions stay, to go back to, and those that an alias names or sends a part of its calls to."""
_PAGE = 25
"""Versions in a page: the configurations of 50 may be more than the 256 kB of a state's data."""
_OLD = (
    "{% ($sorted := $sort($numbers); [$filter($sorted, function($number, $at) {"
    f" $at < $count($sorted) - {KEPT_VERSIONS} and $not($string($number) in $used) }})]) %}}"
)


def _prune_versions(function: str) -> dict[str, Any]:
    """Delete old versions of a function: a snapshot of each is stored, and paid for, as long as it is there."""
    unchanged = {"Output": "{% $states.input %}"}
    return {
        "Aliases": {
            **_task("aws-sdk:lambda:listAliases", {"FunctionName": function, "MaxItems": 1000}),
            **unchanged,
            "Assign": {
                "used": "{% [$states.result.Aliases.FunctionVersion, "
                "$keys($states.result.Aliases.RoutingConfig.AdditionalVersionWeights)] %}",
                "numbers": [],
                "page": {"FunctionName": function, "MaxItems": _PAGE},
            },
            "Next": "Versions",
        },
        "Versions": {
            **_task("aws-sdk:lambda:listVersionsByFunction", "{% $page %}"),
            **unchanged,
            "Assign": {
                "numbers": "{% [$numbers, $states.result.Versions.Version[$ != '$LATEST'].$number()] %}",
                "page": "{% $merge([$page, {'Marker': $states.result.NextMarker}]) %}",
                "more": "{% $exists($states.result.NextMarker) %}",
            },
            "Next": "More",
        },
        "More": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $more %}", "Next": "Versions"}],
            "Default": "Old",
        },
        "Old": {
            "Type": "Map",
            "Items": _OLD,
            "MaxConcurrency": 1,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "INLINE"},
                "StartAt": "Delete",
                "States": {
                    "Delete": {
                        **_task(
                            "aws-sdk:lambda:deleteFunction",
                            {"FunctionName": function, "Qualifier": "{% $string($states.input) %}"},
                        ),
                        **unchanged,
                        "End": True,
                    }
                },
            },
            "Output": "{% $merge([$states.input, {'done': true, 'deleted': $states.result}]) %}",
            "Next": "Done",
        },
    }


def _task(service: str, arguments: Any) -> dict[str, Any]:
    """A call of a service, repeated as long as that may help."""
    patiently = {"IntervalSeconds": 20, "BackoffRate": 2.5, "MaxDelaySeconds": 600, "MaxAttempts": 6}
    return {
        "Type": "Task",
        "Resource": f"arn:{Aws.PARTITION}:states:::{service}",
        "Arguments": arguments,
        "Retry": [
            {"ErrorEquals": _SENSELESS, "MaxAttempts": 0},
            {"ErrorEquals": ["States.ALL"], **patiently, "JitterStrategy": "FULL"},
        ],
    }
