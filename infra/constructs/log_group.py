"""Log groups, kept as long as the context says and in production also after their stack; and the key of the context."""

from typing import cast

from aws_cdk import Aws, Fn, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.constructs.rights import allow
from infra.context import Context


def log_group(scope: Construct, id: str, *, context: Context, vended: str = "") -> logs.LogGroup:
    """A log group.

    Args:
        scope: Where it belongs.
        id: Of the construct.
        context: Retention, encryption, and whether it outlives the stack.
        vended: Of a log that an AWS service delivers: the end of its name. The id of the stack follows, because a
            group that outlived an earlier stack has its name still.
    """
    group = logs.LogGroup(
        scope,
        id,
        log_group_name=f"/aws/vendedlogs/{vended}/{Fn.select(2, Fn.split('/', Aws.STACK_ID))}" if vended else None,
        removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if context.production else RemovalPolicy.DESTROY,
        encryption_key=customer_key(scope, context),
    )
    cast(logs.CfnLogGroup, group.node.default_child).retention_in_days = context.log_retention_days
    return group


def customer_key(scope: Construct, context: Context) -> kms.IKey | None:
    """The key of the context; none: AWS's own keys."""
    if not context.kms_key_arn:
        return None
    known = scope.node.try_find_child("CustomerKey")
    return known if known else kms.Key.from_key_arn(scope, "CustomerKey", context.kms_key_arn)  # type: ignore[return-value]


def decrypt_tables(context: Context) -> list[iam.PolicyStatement]:
    """The right to the key that whoever uses a table or its stream needs, too; none with AWS's own keys."""
    if not context.kms_key_arn:
        return []
    by_tables = {"StringEquals": {"kms:ViaService": f"dynamodb.{Aws.REGION}.amazonaws.com"}}
    return [allow("kms:Decrypt", "kms:DescribeKey", on=context.kms_key_arn, where=by_tables)]
