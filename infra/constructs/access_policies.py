"""Managed policies to attach: owners, operators, agents."""

from collections.abc import Sequence

from aws_cdk import Aws, CfnOutput
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.discovery_api import CALLS, STAGE, wildcard
from infra.constructs.event_path import EventPath
from infra.constructs.files_bucket import FilesBucket
from infra.constructs.function import Foundation
from infra.constructs.maintenance import Maintenance
from infra.constructs.nag import HERE, accept_wildcards, logical_id
from infra.constructs.search_domain import Calls, SearchDomain
from infra.constructs.shared import allow
from infra.constructs.tables import MatsTables

TAGS = ("mats-namespace", *(f"mats-namespace-{n}" for n in range(2, 6)))
"""Principal tags that hold an owner's namespaces, one in each; the first one makes an owner."""
MEND: Calls = {
    **{f"es:ESHttp{method}": ["*"] for method in ("Get", "Head")},
    **{f"es:ESHttp{method}": ["capabilities*", "memory*"] for method in ("Put", "Delete")},
    "es:ESHttpPost": ["capabilities*", "_aliases"],
}
"""Calls of operators: look at the whole domain; change our indices, but no settings, templates, scripts or snapshots of
the cluster."""
_NAMESPACES = tuple(f"${{aws:PrincipalTag/{tag}, '~'}}" for tag in TAGS)  # No namespace has the name of a missing tag
_READ = ("GetItem", "BatchGetItem", "Query")
_WRITE = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")


class AccessPolicies(Construct):
    """Policies that the account attaches to its principals; operators have two."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        on: Foundation,
        path: EventPath,
        reports: sqs.IQueue,
        enrichment: lambda_.IFunction,
        maintenance: Maintenance,
        api: apigateway.RestApi,
    ) -> None:
        super().__init__(scope, id)
        tables, domain = on.tables, on.domain
        self.owners = self._policy("Owners", "Write registrations of their namespaces and read what became of them", [
            self._in_namespaces(tables.registry.table_arn, (*_READ, *_WRITE)),
            self._in_namespaces(tables.profiles.table_arn, _READ),
            *on.shared.decrypt_tables(),
        ])  # fmt: skip
        self.operators = self._policy("Operators", "Give trust and audiences, redrive, reindex, reconcile", [
            *_tables_access(tables),
            *on.shared.decrypt_tables(),
            *_repairs(path, [path.queue.queue_arn, reports.queue_arn], domain),
            *_replays(path),
            *maintenance.statements(),
            # the commands of `mats` read its settings
            allow("lambda:GetFunctionConfiguration", on=enrichment.function_arn),
        ])  # fmt: skip
        if invoked := [*on.models.statements(on.models.chosen.writer), *on.models.encoder_statements()]:
            self._policy("OperatorsModels", "Invoke writer and encoder, for `mats backfill`", invoked)
        self._accept_operators(domain, maintenance)
        calls = [(method, wildcard(path)) for method, path in CALLS]
        called = [api.arn_for_execute_api(method, path, STAGE) for method, path in calls]
        self.agents = self._policy("Agents", "Call the API of mats", [allow("execute-api:Invoke", on=called)])
        spelt = f"arn:<AWS::Partition>:execute-api:{HERE}:<{logical_id(api)}>/{STAGE}"
        accept_wildcards(
            self.agents,
            [f"{spelt}/{method}{path}" for method, path in calls],
            "The id of a capability is in the path, in two ways; who may see it is for discovery to say",
        )

    def _accept_operators(self, domain: SearchDomain | FilesBucket, maintenance: Maintenance) -> None:
        if isinstance(domain, SearchDomain):
            looks = "Operators may look at everything, which GET and HEAD do not change"
            domain.accept_paths(self.operators, ["*"], looks)
            domain.accept_paths(self.operators, ["capabilities*", "memory*"], "Operators may mend every index of ours")
        accept_wildcards(
            self.operators, [f"arn:<AWS::Partition>:events:{HERE}:replay/*"], "A replay is named by whoever starts it"
        )
        accept_wildcards(
            self.operators,
            [f"arn:<AWS::Partition>:states:{HERE}:execution:<{logical_id(maintenance.machine)}.Name>:*"],
            "An execution is named by whoever starts it",
        )

    def _policy(self, name: str, description: str, statements: Sequence[iam.PolicyStatement]) -> iam.ManagedPolicy:
        policy = iam.ManagedPolicy(self, name, description=description, statements=list(statements))
        CfnOutput(self, f"{name}Arn", value=policy.managed_policy_arn).override_logical_id(f"{name}Policy")
        return policy

    @staticmethod
    def _in_namespaces(table: str, calls: Sequence[str]) -> iam.PolicyStatement:
        """Without the null guards a call that names no key would pass, and so would a principal without a tag."""
        own_keys = {
            "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": list(_NAMESPACES)},
            "Null": {"dynamodb:LeadingKeys": "false", f"aws:PrincipalTag/{TAGS[0]}": "false"},
        }
        return allow(*(f"dynamodb:{call}" for call in calls), on=table, where=own_keys)


def _tables_access(tables: MatsTables) -> list[iam.PolicyStatement]:
    learned = (tables.receipts, tables.outcomes)
    kept = [table.table_arn for table in (tables.trust, tables.callers, tables.profiles, *learned)]
    calls = [f"dynamodb:{call}" for call in (*_READ, "Scan", "DescribeTable")]
    return [
        allow(*calls, on=[tables.registry.table_arn, *kept]),
        allow("dynamodb:Query", on=tables.outcomes_by_id),
        allow(*(f"dynamodb:{call}" for call in _WRITE), on=kept),
        allow("dynamodb:DeleteItem", on=tables.registry.table_arn),  # `mats erase`
    ]


_LOOK = ("GetQueueAttributes", "GetQueueUrl", "ListMessageMoveTasks")
_REDRIVE = ("ReceiveMessage", "DeleteMessage", "PurgeQueue", "StartMessageMoveTask", "CancelMessageMoveTask")
"""Each queue is named once, and models are in a policy of their own: one has at most 6,144 characters."""


def _repairs(path: EventPath, queues: Sequence[str], domain: SearchDomain | FilesBucket) -> list[iam.PolicyStatement]:
    """Rights for the procedures in docs/runbook.md."""
    dead = [queue.queue_arn for queue in path.dead_letter_queues.values()]
    index = f"{domain.arn}/" if isinstance(domain, SearchDomain) else ""
    return [
        allow(*(f"sqs:{call}" for call in (*_LOOK, "SendMessage")), on=queues),
        allow(*(f"sqs:{call}" for call in (*_LOOK, *_REDRIVE)), on=dead),
        allow("events:PutEvents", on=path.bus.event_bus_arn),
        *(allow(action, on=[index + each for each in paths]) for action, paths in MEND.items() if index),
    ]


def _replays(path: EventPath) -> list[iam.PolicyStatement]:
    events = f"arn:{Aws.PARTITION}:events:{Aws.REGION}:{Aws.ACCOUNT_ID}"
    replays = f"{events}:replay/*"
    return [
        allow("events:StartReplay", on=[f"{events}:archive/{path.archive_name}", replays]),
        allow("events:DescribeReplay", "events:CancelReplay", on=replays),
    ]
