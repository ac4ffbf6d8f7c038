"""Maintenance: the function that repairs and rebuilds, and the state machine that calls it until a task is done."""

from dataclasses import replace

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.event_path import EventPath
from infra.constructs.foundation import Foundation
from infra.constructs.function import Function, Limits, common, environment
from infra.constructs.maintenance_machine import MaintenanceMachine
from infra.constructs.search_domain import INDEX_DENIED, Calls
from infra.layers import core_layer, vendor_layer

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
