"""Maintenance: the function that repairs and rebuilds, the state machine that calls it, and what starts that."""

import json
from pathlib import Path
from typing import Any

from aws_cdk import Aws, CfnOutput, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.constructs.event_path import RESENT, EventPath
from infra.constructs.files_bucket import FilesBucket
from infra.constructs.function import DEFAULTS, Foundation, Function, Values
from infra.constructs.nag import accept, accept_wildcards, logical_id
from infra.constructs.shared import allow

REFILLED_AFTER = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
)
"""States of the stack after which its domain may be a new one. While the old one is deleted, for many minutes, the new
one is in use already; so a refill begins with the cleanup, and once more after it."""


class Maintenance(Construct):
    """The function, the state machine that calls it with what it returned until a task is done, and what starts that.

    The function reads registrations, trust and profiles, writes the index, and sends other work down the event path. It
    invokes no model; of Profiles it writes the list of indices only. Two executions at a time do no harm: every piece
    can be repeated, and of two writes of a revision one is a no-op.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        on: Foundation,
        path: EventPath,
        discovery: lambda_.IFunction,
        kept_versions: int = 1,  # Of discovery
        settings: Values = DEFAULTS,
    ) -> None:
        super().__init__(scope, id)
        tables = on.tables
        environment = on.environment(
            **tables.settings("registry", "trust", "profiles", "outcomes"),
            event_bus=path.bus.event_bus_name,
            **settings,
        )
        made = Function(
            self, "Maintenance", on=on, folder="maintenance", environment=environment, memory_mb=1024, timeout_s=900
        )
        tables.registry.grant(made.role, "dynamodb:Scan", "dynamodb:BatchGetItem")
        tables.trust.grant(made.role, "dynamodb:BatchGetItem")
        tables.profiles.grant(made.role, *(f"dynamodb:{call}" for call in ("Scan", "BatchGetItem", "GetItem")))
        reported = allow("dynamodb:Scan", on=tables.outcomes.table_arn)
        made.allow([reported, _put_row(tables.profiles.table_arn, "~system")])  # the list of indices: `DynamoTargets`
        path.grant_put_events(made.role, RESENT)
        on.domain.grant(made.role, "maintenance")
        states = definition(made.function.function_arn, discovery.function_name, kept=kept_versions)
        self._tasks = Construct(self, "Tasks")
        self.machine = sfn.StateMachine(
            self._tasks,
            "Machine",
            state_machine_name=f"{on.shared.name}-maintenance",
            definition_body=sfn.DefinitionBody.from_string(Stack.of(self).to_json_string(states)),
            role=self._role(made.function, discovery),
            tracing_enabled=True,
            logs=sfn.LogOptions(
                destination=on.shared.log_group(self._tasks, "Log", vended=f"states/{on.shared.name}-maintenance"),
                level=sfn.LogLevel.ALL,
            ),
        )
        self._add_rules()
        if isinstance(on.domain, FilesBucket):
            compact = events.RuleTargetInput.from_object({"task": "compact"})
            events.Rule(
                self,
                "Compact",
                description="New records of the index become a file",
                schedule=events.Schedule.rate(Duration.minutes(15)),
                targets=[targets.LambdaFunction(made.function, event=compact)],
            )
        CfnOutput(self._tasks, "Arn", value=self.machine.state_machine_arn).override_logical_id("MaintenanceMachine")

    def _role(self, function: lambda_.IFunction, discovery: lambda_.IFunction) -> iam.Role:
        """The role of the state machine."""
        rights = [
            allow("lambda:InvokeFunction", on=function.function_arn),
            allow("lambda:ListVersionsByFunction", "lambda:ListAliases", on=discovery.function_arn),
            allow("lambda:DeleteFunction", on=f"{discovery.function_arn}:*"),
        ]
        runs, policy = iam.ServicePrincipal("states.amazonaws.com"), iam.PolicyDocument(statements=rights)
        role = iam.Role(self._tasks, "Role", assumed_by=runs, inline_policies={"run": policy})
        accept(role, **{"IAM5[Resource::*]": "Log delivery and tracing know no resources"})
        why = "Versions have numbers; the function itself has no number, and so cannot be deleted"
        accept_wildcards(role, [f"<{logical_id(discovery)}.Arn>:*"], why)
        return role

    def _add_rules(self) -> None:
        events.Rule(
            self._tasks,
            "Daily",
            description="Every night registry, profiles and index are compared",
            schedule=events.Schedule.cron(minute="17", hour="3"),
            targets=[self._start("reconcile")],
        )
        events.Rule(
            self._tasks,
            "Deployed",
            description="A new domain is filled from profiles and outcomes, and old versions are deleted",
            event_pattern=events.EventPattern(
                source=["aws.cloudformation"],
                detail_type=["CloudFormation Stack Status Change"],
                detail={"stack-id": [Aws.STACK_ID], "status-details": {"status": list(REFILLED_AFTER)}},
            ),
            targets=[self._start(task) for task in ("relearn", "reconcile", "versions")],
        )

    def _start(self, task: str) -> targets.SfnStateMachine:
        return targets.SfnStateMachine(
            self.machine,
            input=events.RuleTargetInput.from_object({"task": task}),
            retry_attempts=185,
            max_event_age=Duration.hours(24),
        )

    def statements(self) -> list[iam.PolicyStatement]:
        """The rights to start, watch and stop tasks."""
        runs = f"arn:{Aws.PARTITION}:states:{Aws.REGION}:{Aws.ACCOUNT_ID}:execution:{self.machine.state_machine_name}:*"
        of_machine = ("states:StartExecution", "states:ListExecutions", "states:DescribeStateMachine")
        of_runs = ("states:DescribeExecution", "states:GetExecutionHistory", "states:StopExecution")
        return [allow(*of_machine, on=self.machine.state_machine_arn), allow(*of_runs, on=runs)]


def definition(function: str, discovery: str, *, kept: int) -> dict[str, Any]:
    """The state machine in Amazon States Language, which calls `function` until it says that the task is done.

    Its task `versions` deletes versions of `discovery` but the newest `kept` and those that an alias sends calls to.
    It reads pages of 25 versions: the configurations of 50 may be more than the 256 kB of a state's data. Errors that
    a repetition does not resolve are not retried.
    """
    text, retry = (Path(__file__).with_name(f"maintenance.{part}.json").read_text("utf-8") for part in ("asl", "retry"))
    for name, value in {
        "<partition>": Aws.PARTITION,
        "<function>": function,
        "<discovery>": discovery,
        "<kept>": str(kept),
        '"<retry>"': retry,
    }.items():
        text = text.replace(name, value)
    machine: dict[str, Any] = json.loads(text)
    return machine


def _put_row(table: str, key: str) -> iam.PolicyStatement:
    """The right to write the rows of one partition key, and no others."""
    of_key = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [key]}, "Null": {"dynamodb:LeadingKeys": "false"}}
    return allow("dynamodb:PutItem", on=table, where=of_key)
