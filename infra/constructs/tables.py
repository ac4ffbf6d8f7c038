"""The DynamoDB tables: Registry, Trust, Profiles, Callers."""

from aws_cdk import CfnOutput, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

_TEXT = dynamodb.AttributeType.STRING


class MatsTables(Construct):
    """Retained when the stack is deleted: everything else can be made again from these tables."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.registry = self._table("Registry", streamed=True)
        self.trust = self._table("Trust", streamed=True)
        self.profiles = self._table("Profiles")
        self.callers = self._table("Callers", key="caller")
        for name, table in {"Registry": self.registry, "Trust": self.trust, "Profiles": self.profiles}.items():
            CfnOutput(self, f"{name}Name", value=table.table_name).override_logical_id(f"{name}Table")
        CfnOutput(self, "CallersName", value=self.callers.table_name).override_logical_id("CallersTable")

    def _table(self, name: str, *, key: str | None = None, streamed: bool = False) -> dynamodb.Table:
        """A table keyed by namespace and name, or by `key` alone."""
        return dynamodb.Table(
            self,
            name,
            table_name=f"mats-{name.lower()}",
            partition_key=dynamodb.Attribute(name=key or "namespace", type=_TEXT),
            sort_key=None if key else dynamodb.Attribute(name="name", type=_TEXT),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.AWS_MANAGED,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
            stream=dynamodb.StreamViewType.KEYS_ONLY if streamed else None,
        )
