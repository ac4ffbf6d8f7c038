"""Maintenance: the function that repairs and rebuilds, the state machine that calls it, and what starts that."""

from dataclasses import replace
from typing import Any

from aws_cdk import Aws, CfnOutput, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.constructs.event_path import EventPath
from infra.constructs.foundation import Foundation
from infra.constructs.function import Function, Limits, common, environment
from infra.constructs.log_group import log_group
from infra.constructs.nag import accept_each, accept_wildcards
from infra.constructs.search_domain import INDEX_DENIED, Calls
from infra.context import Context
from infra.layers import core_layer, vendor_layer

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


TIMEOUT_S = 900
MEMORY_MB = 1024
MAINTAIN: Calls = {
    "es:ESHttpGet": ["_alias/capabilities", "_alias/memory"],
    "es:ESHttpPut": ["capabilities-*"],
    "es:ESHttpDelete": ["capabilities-*"],
    "es:ESHttpPost": [
        "_aliases",
        "capabilities/_search",
        "capabilities-*-write/_bulk",
        *(f"capabilities-*/_{call}" for call in ("search", "refresh", "delete_by_query", "forcemerge")),
    ],
}
"""Calls of maintenance: compare, fill, and make, switch and delete indices; switch the memory's."""
MAINTAIN_DENIED: Calls = {**INDEX_DENIED, "es:ESHttpDelete": ["capabilities-*/*"]}
"""Calls to deny, because the wildcards of MAINTAIN would allow them: single documents, settings, mappings, aliases."""


class MaintenanceFunction(Construct):
    """Reads registrations, trust and profiles, writes the index, and sends other work down the event path.

    It invokes no model, and of Profiles it writes the list of indices only.
    """

    def __init__(
        self, scope: Construct, id: str, *, on: Foundation, path: EventPath, discovery: lambda_.IFunction
    ) -> None:
        super().__init__(scope, id)
        tables = on.tables
        settings = replace(
            common(on.context, on.models),
            registry_table=tables.registry.table_name,
            trust_table=tables.trust.table_name,
            profiles_table=tables.profiles.table_name,
            switches_table=tables.switches.table_name,
            event_bus=path.bus.event_bus_name,
        )
        made = Function(
            self,
            "Maintenance",
            folder="maintenance",
            layers=[core_layer, vendor_layer],
            context=on.context,
            environment=environment(settings, endpoint=on.domain.domain.domain_endpoint),
            limits=Limits(memory_mb=MEMORY_MB, timeout_s=TIMEOUT_S),
            network=on.network,
        )
        self.function, self.log = made.function, made.log
        tables.registry.grant(made.role, "dynamodb:Scan", "dynamodb:BatchGetItem")
        tables.trust.grant(made.role, "dynamodb:BatchGetItem")
        tables.profiles.grant(made.role, *(f"dynamodb:{call}" for call in ("Scan", "BatchGetItem", "GetItem")))
        tables.switches.grant(made.role, "dynamodb:GetItem")
        made.allow([_list_of_indices(tables.profiles.table_arn)])
        path.bus.grant_put_events_to(made.role)
        on.domain.allow(made.role, MAINTAIN, denied=MAINTAIN_DENIED)
        self.machine = MaintenanceMachine(
            self, "Tasks", context=on.context, function=made.function, discovery=discovery
        )


def _list_of_indices(profiles: str) -> iam.PolicyStatement:
    """The right to write the one row of Profiles that is no profile: see `DynamoTargets`."""
    return iam.PolicyStatement(
        actions=["dynamodb:PutItem"],
        resources=[profiles],
        conditions={
            "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["~system"]},
            "Null": {"dynamodb:LeadingKeys": "false"},
        },
    )
