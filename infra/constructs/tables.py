"""The DynamoDB tables: Registry, Trust, Profiles, Callers, Receipts, Outcomes."""

from typing import Any

from aws_cdk import CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra.constructs.shared import Shared

BY_ID = "by-id"
"""The index that `mats.adapters.dynamodb.receipts` reads; that module needs boto3, which is not installed here."""
_TEXT = dynamodb.AttributeType.STRING


class MatsTables(Construct):
    """Retained when the stack is deleted: everything else can be made again from these tables."""

    def __init__(self, scope: Construct, id: str, *, shared: Shared) -> None:
        super().__init__(scope, id)
        self._shared = shared
        self.registry = self._table("Registry", streamed=True)
        self.trust = self._table("Trust", streamed=True)
        self.profiles = self._table("Profiles", expires="expires_at")
        self.callers = self._table("Callers", "caller")
        self.receipts = self._table("Receipts", "query_id", expires="expires_at")
        self.outcomes = self._table("Outcomes", "query_id", "item", streamed=True, expires="expires_at")
        self.outcomes.add_global_secondary_index(  # which lacks receipts: they have no `id`
            index_name=BY_ID,
            partition_key=dynamodb.Attribute(name="id", type=_TEXT),
            sort_key=dynamodb.Attribute(name="query_id", type=_TEXT),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
        self.outcomes_by_id = f"{self.outcomes.table_arn}/index/{BY_ID}"
        """The ARN of the index; `Table.grant` would name all indices."""

    def settings(self, *names: str) -> dict[str, Any]:
        """The settings that name these tables."""
        return {f"{name}_table": getattr(self, name).table_name for name in names}

    def _table(self, name: str, *keys: str, streamed: bool = False, expires: str | None = None) -> dynamodb.Table:
        """A table with one or two keys, namespace and name by default, exported in every context.

        CloudFormation refuses to remove an export that a stack uses, so what is exported does not depend on the
        context: every switch can be changed on a live system.
        """
        partition, sort = (*(keys or ("namespace", "name")), None)[:2]
        own_key = self._shared.key
        table = dynamodb.Table(
            self,
            name,
            table_name=f"{self._shared.name}-{name.lower()}",
            partition_key=dynamodb.Attribute(name=partition or "", type=_TEXT),
            sort_key=dynamodb.Attribute(name=sort, type=_TEXT) if sort else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if own_key else dynamodb.TableEncryption.AWS_MANAGED,
            encryption_key=own_key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # where a first creation fails, CloudFormation has to delete what it made, or a retry finds the name taken
            deletion_protection=self._shared.protected,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            stream=dynamodb.StreamViewType.KEYS_ONLY if streamed else None,
            time_to_live_attribute=expires,
        )
        CfnOutput(self, f"{name}Name", value=table.table_name).override_logical_id(f"{name}Table")
        stack = Stack.of(self)
        stack.export_value(table.table_name)
        stack.export_value(table.table_arn)
        if streamed:
            stack.export_value(table.table_stream_arn)
        return table
