"""What every part of a deployment has in common: the prefix of its names, its key, its logs, how rights are spelt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from aws_cdk import Aws, Fn, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What every part of a deployment has in common."""

    name: str  # Prefix of every physical name
    key: kms.IKey | None = None  # Of tables, index, logs and environment variables; None: keys of AWS
    log_days: int = 90
    protected: bool = False  # True: tables cannot be deleted, and logs outlive their stack

    def log_group(self, scope: Construct, id: str, *, vended: str = "") -> logs.LogGroup:
        """A log group.

        `vended` is the end of the name of a log that an AWS service delivers. The id of the stack follows, because a
        group that outlived an earlier stack has its name still.
        """
        group = logs.LogGroup(
            scope,
            id,
            log_group_name=f"/aws/vendedlogs/{vended}/{Fn.select(2, Fn.split('/', Aws.STACK_ID))}" if vended else None,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if self.protected else RemovalPolicy.DESTROY,
            encryption_key=self.key,
        )
        cast(logs.CfnLogGroup, group.node.default_child).retention_in_days = self.log_days
        return group

    def decrypt_tables(self) -> list[iam.PolicyStatement]:
        """The right to the key that whoever uses a table or its stream needs, too; none with keys of AWS."""
        by_tables = {"StringEquals": {"kms:ViaService": f"dynamodb.{Aws.REGION}.amazonaws.com"}}
        return [allow("kms:Decrypt", "kms:DescribeKey", on=self.key.key_arn, where=by_tables)] if self.key else []


def allow(
    *actions: str,
    on: str | Sequence[str],
    where: Mapping[str, Any] | None = None,
    effect: iam.Effect = iam.Effect.ALLOW,
) -> iam.PolicyStatement:
    """The right to these actions on one resource or several, under these conditions; or with `effect` its denial."""
    resources = [on] if isinstance(on, str) else [*on]
    return iam.PolicyStatement(effect=effect, actions=[*actions], resources=resources, conditions=where)
