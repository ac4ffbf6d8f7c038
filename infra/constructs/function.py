"""A Lambda function: its layers, log, role and environment; and the resources that all functions share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.files_bucket import FilesBucket
from infra.constructs.model_access import ModelAccess
from infra.constructs.nag import accept, accept_managed, accept_warning
from infra.constructs.network import Network
from infra.constructs.search_domain import SearchDomain
from infra.constructs.shared import Shared, allow
from infra.constructs.tables import MatsTables
from infra.layers import ARCHITECTURE, RUNTIME
from infra.vendor import ROOT
from mats.settings import Settings, variable_of

LIVE = "live"  # Name of an alias
Values: TypeAlias = Mapping[str, Any]  # Settings by name
DEFAULTS: Values = {}
_KEPT = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
"""Of versions to go back to. One that a failed deployment made goes, or the same code could not be published again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """The resources that all functions share. They are made before the functions and depend on none of them."""

    shared: Shared
    models: ModelAccess
    tables: MatsTables
    domain: SearchDomain | FilesBucket
    network: Network | None = None
    core: lambda_.LayerVersion  # Our own code
    packages: Sequence[lambda_.LayerVersion]
    metrics: str = ""  # Namespace of the metrics that functions write themselves; empty: they write none

    def environment(self, **others: Any) -> dict[str, str]:
        """The variables of the settings that all functions of the index share, and others."""
        models = self.models
        shared = Settings(
            bedrock=True,
            encoder=models.chosen.encoder,
            metrics=self.metrics,
            rerank_model=models.id_of(models.chosen.reranker),
            writer_model=models.id_of(models.chosen.writer),
            index_endpoint="https://index.invalid",  # to be validated with the others; in a synthesis it is a token
            index_engine=self.domain.engine_version,
        )
        return {**replace(shared, **others).to_env(), variable_of("index_endpoint"): self.domain.address}


class Function(Construct):
    """A folder of functions/ with its layers. Its only right at first is to write its log."""

    def __init__(  # noqa: PLR0913 - one argument for each property
        self,
        scope: Construct,
        id: str,
        *,
        on: Foundation,
        folder: str,
        environment: Mapping[str, str],
        memory_mb: int,
        timeout_s: int,
        packages: Sequence[lambda_.LayerVersion] = (),  # By default those that most functions have
        in_network: bool = True,
        snap_start: bool = False,
        keeps_versions: bool = False,  # Those that were live; else one goes when the next is live
    ) -> None:
        super().__init__(scope, id)
        network, own_key = on.network if in_network else None, on.shared.key
        self.log = on.shared.log_group(self, "Log")
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.log.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Function",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            handler="handler.handle",
            code=lambda_.Code.from_asset(str(ROOT / "functions" / folder), exclude=["**/__pycache__"]),
            layers=[on.core, *(packages or on.packages)],
            environment=dict(environment),
            environment_encryption=own_key,
            tracing=lambda_.Tracing.ACTIVE,
            memory_size=memory_mb,
            timeout=Duration.seconds(timeout_s),
            role=self.role,
            log_group=self.log,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.INFO,  # with the report: time, memory, restore
            current_version_options=lambda_.VersionOptions(
                removal_policy=_KEPT if keeps_versions else RemovalPolicy.DESTROY
            ),
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if snap_start else None,
            vpc=network.vpc if network else None,
            vpc_subnets=network.subnets if network else None,
            security_groups=[network.functions] if network else None,
        )
        if own_key:  # which encrypts what the function reads: its environment, the tables
            self.allow([allow("kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey", on=own_key.key_arn)])
        if snap_start:
            accept_warning(self, "@aws-cdk/aws-lambda:snapStartRequirePublish", "Its alias is of a published version")
        accept(self, **{"IAM5[Resource::*]": "Traces know no resources; nothing else in this role is for all"})
        accept(self, L1="Python 3.13 is what the layers are compiled for and what the tests run on")
        if network:
            why = "Network interfaces are made by Lambda; AWS keeps the list of what that takes"
            accept_managed(self, "AWSLambdaVPCAccessExecutionRole", why)

    def live(self, scope: Construct) -> lambda_.Alias:
        """The alias of the newest version; a rollout moves it."""
        return lambda_.Alias(scope, "Live", alias_name=LIVE, version=self.function.current_version)

    def allow(self, statements: Iterable[iam.PolicyStatement]) -> None:
        for statement in statements:
            self.role.add_to_policy(statement)
