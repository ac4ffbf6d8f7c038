"""The OpenSearch domain; each role is allowed single paths of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from aws_cdk import Aws, CfnCondition, CfnOutput, Fn, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_opensearchservice as opensearch
from constructs import Construct, IConstruct

from infra.constructs.nag import HERE, accept, accept_wildcards
from infra.constructs.network import Network
from infra.constructs.shared import Shared, allow
from infra.sizes import Nodes
from mats.settings import Settings

Calls = Mapping[str, Sequence[str]]
"""Paths of the domain by IAM action. A `*` also matches `/`: `x*/_search` matches `x/_doc/_search`, a write."""

SEARCH: Calls = {"es:ESHttpPost": ["capabilities/_search", "capabilities/_mget", "memory/_search"]}
"""Calls of discovery: queries, which OpenSearch takes as POST. No wildcard, so it can write nothing."""


def _writes(alias: str) -> tuple[Calls, Calls]:
    """To write documents and create the first index with its alias, and what those wildcards would allow beside.

    Which is `_doc/x-write/_bulk`, `_settings`, `_alias/x`, `a,b`.
    """
    calls: Calls = {
        "es:ESHttpPost": [f"{alias}-*-write/_bulk"],
        "es:ESHttpPut": [f"{alias}-*"],
        "es:ESHttpGet": [f"_alias/{alias}"],
    }
    return calls, {"es:ESHttpPost": [f"{alias}-*/*/*", "*,*"], "es:ESHttpPut": [f"{alias}-*/*"]}


MAINTAIN: Calls = {
    "es:ESHttpGet": ["_alias/capabilities", "_alias/memory"],
    "es:ESHttpPut": ["capabilities-*"],
    "es:ESHttpDelete": ["capabilities-*"],
    "es:ESHttpPost": [
        "_aliases",
        "capabilities/_search",
        "capabilities/_mget",
        "capabilities-*-write/_bulk",
        *(f"capabilities-*/_{call}" for call in ("mget", "search", "refresh", "delete_by_query", "forcemerge")),
    ],
}
"""Calls of maintenance: compare, fill, and make, switch and delete indices; switch the memory's."""
MAINTAIN_DENIED: Calls = {**_writes("capabilities")[1], "es:ESHttpDelete": ["capabilities-*/*", "*,*"]}
"""What the wildcards of MAINTAIN would allow beside: single documents, settings, mappings, aliases, other indices."""
_RIGHTS: Mapping[str, tuple[Calls, Calls | None]] = {
    "discovery": (SEARCH, None),
    "enrichment": _writes("capabilities"),
    "learning": _writes("memory"),
    "maintenance": (MAINTAIN, MAINTAIN_DENIED),
}
"""Calls that functions are allowed, and calls that they are denied."""


class SearchDomain(Construct):
    """One small node for a trial, or three. Its content can be made again from Profiles."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        shared: Shared,
        nodes: Nodes,
        name: str = "",  # Another one wherever the domain has to be replaced: CloudFormation creates before it deletes
        engine_version: str = Settings().index_engine,
        network: Network | None = None,
    ) -> None:
        super().__init__(scope, id)
        self.name, self.engine_version = name or shared.name, engine_version
        self.arn = f"arn:{Aws.PARTITION}:es:{Aws.REGION}:{Aws.ACCOUNT_ID}:domain/{self.name}"
        self._callers = iam.PolicyDocument()
        self.domain = opensearch.Domain(
            self,
            "Domain",
            domain_name=self.name,
            version=opensearch.EngineVersion.open_search(engine_version),
            capacity=opensearch.CapacityConfig(
                data_nodes=nodes.nodes,
                data_node_instance_type=nodes.node,
                master_nodes=nodes.masters or None,
                master_node_instance_type=nodes.master if nodes.masters else None,
                multi_az_with_standby_enabled=False,
            ),
            ebs=opensearch.EbsOptions(volume_size=nodes.gb_each, volume_type=ec2.EbsDeviceVolumeType.GP3),
            zone_awareness=opensearch.ZoneAwarenessConfig(
                enabled=nodes.zones > 1, availability_zone_count=nodes.zones if nodes.zones > 1 else None
            ),
            encryption_at_rest=opensearch.EncryptionAtRestOptions(enabled=True, kms_key=shared.key),
            node_to_node_encryption=True,
            enforce_https=True,
            tls_security_policy=opensearch.TLSSecurityPolicy.TLS_1_2_PFS,
            logging=self._logging(shared),
            suppress_logs_resource_policy=True,
            enable_auto_software_update=True,
            enable_version_upgrade=True,  # else another engine version replaces the domain
            advanced_options={"rest.action.multi.allow_explicit_index": "false"},  # else a body could leave its path
            off_peak_window_enabled=True,
            removal_policy=RemovalPolicy.DESTROY,
            vpc=network.vpc if network else None,
            vpc_subnets=[network.subnets] if network else None,
            security_groups=[network.domain] if network else None,
        )
        declared = cast(opensearch.CfnDomain, self.domain.node.default_child)
        declared.access_policies = self._callers
        if nodes.masters:
            there = Fn.condition_equals(Aws.REGION, "eu-south-1")  # which does not offer the other type
            milan = CfnCondition(self, "Milan", expression=there)
            master = Fn.condition_if(milan.logical_id, "m6g.large.search", nodes.master)
            declared.add_property_override("ClusterConfig.DedicatedMasterType", master)
        declared.node.add_dependency(self._may_log)
        self.address = f"https://{self.domain.domain_endpoint}"
        CfnOutput(self, "Endpoint", value=self.domain.domain_endpoint).override_logical_id("IndexEndpoint")
        self._accept(nodes, network)

    def grant(self, role: iam.IRole, function: str) -> None:
        """The rights of a function, in the policy of its role and in that of the domain."""
        calls, denied = _RIGHTS[function]
        for effect, each in ((iam.Effect.ALLOW, calls), (iam.Effect.DENY, denied or {})):
            for action, paths in each.items():
                said = allow(action, on=[f"{self.arn}/{path}" for path in paths], effect=effect)
                role.add_to_principal_policy(said)
                self._callers.add_statements(said.copy(principals=[iam.ArnPrincipal(role.role_arn)]))
        for paths in calls.values():
            self.accept_paths(role, paths, "Indices have suffixes that change with each reindex; the methods are named")

    def accept_paths(self, where: IConstruct, paths: Iterable[str], reason: str) -> None:
        """Accept wildcards in paths of this domain."""
        spelt = f"arn:<AWS::Partition>:es:{HERE}:domain/{self.name}"
        accept_wildcards(where, [f"{spelt}/{path}" for path in paths], reason)

    def _logging(self, shared: Shared) -> opensearch.LoggingOptions:
        groups = {
            kind: shared.log_group(self, f"{kind.title()}Log", vended=f"opensearch/{self.name}/{kind}")
            for kind in ("errors", "searching", "indexing")
        }
        self._may_log = self._delivery(list(groups.values()))
        return opensearch.LoggingOptions(
            app_log_enabled=True,
            app_log_group=groups["errors"],
            slow_search_log_enabled=True,
            slow_search_log_group=groups["searching"],
            slow_index_log_enabled=True,
            slow_index_log_group=groups["indexing"],
        )

    def _delivery(self, groups: Sequence[logs.LogGroup]) -> logs.ResourcePolicy:
        """Let the domain write these logs; the CDK's default is a function that calls AWS during deployment."""
        statement = iam.PolicyStatement(
            principals=[iam.ServicePrincipal("es.amazonaws.com")],
            actions=["logs:CreateLogStream", "logs:PutLogEvents"],
            resources=[group.log_group_arn for group in groups],
            conditions={
                "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                "ArnEquals": {"aws:SourceArn": self.arn},
            },
        )
        return logs.ResourcePolicy(
            self, "MayLog", resource_policy_name=f"{self.name}-domain", policy_statements=[statement]
        )

    def _accept(self, nodes: Nodes, network: Network | None) -> None:
        accept(
            self.domain,
            OS3="Callers are told apart by their role and its paths, not by their address, which Lambda's is not known",
        )
        if network is None:
            accept(self.domain, OS1="network=public was chosen; every call is signed, and allowed by role and path")
        remade = "is made again from Profiles by `mats reconcile`"
        if not nodes.masters:
            accept(self.domain, OS4=f"Without masters=true, data nodes elect one of them; the index {remade}")
        if nodes.nodes == 1:
            accept(self.domain, OS7=f"A trial has one node; its index {remade}")
