"""Optional parts of the system that a key of the context adds."""

from collections.abc import Sequence

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_cloudtrail as cloudtrail
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.constructs.nag import accept, accept_managed
from infra.context import Context


class Audit(Construct):
    """A separate trail, because a stream says what changed but not who changed it."""

    def __init__(self, scope: Construct, id: str, *, context: Context, tables: Sequence[dynamodb.ITable]) -> None:
        super().__init__(scope, id)
        self._trail_name = f"{context.name}-writes"
        self.bucket = s3.Bucket(
            self,
            "Records",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(400))],
            removal_policy=RemovalPolicy.RETAIN,
        )
        accept(self.bucket, S1="CloudTrail is its only writer; logging its reads would need another bucket like it")
        allowed = self._deliver()
        selectors: list[dict[str, object]] = [
            {"field": "eventCategory", "equalTo": ["Data"]},
            {"field": "resources.type", "equalTo": ["AWS::DynamoDB::Table"]},
            {"field": "readOnly", "equalTo": ["false"]},
            {"field": "resources.ARN", "equalTo": [table.table_arn for table in tables]},
        ]
        trail = cloudtrail.CfnTrail(
            self,
            "Trail",
            trail_name=self._trail_name,
            is_logging=True,
            s3_bucket_name=self.bucket.bucket_name,
            enable_log_file_validation=True,
            include_global_service_events=False,
            is_multi_region_trail=False,
            advanced_event_selectors=[{"name": "Writes by people", "fieldSelectors": selectors}],
        )
        trail.node.add_dependency(allowed)

    def _deliver(self) -> Construct:
        arn = f"arn:{Aws.PARTITION}:cloudtrail:{Aws.REGION}:{Aws.ACCOUNT_ID}:trail/{self._trail_name}"
        service = iam.ServicePrincipal("cloudtrail.amazonaws.com")
        ours = {"StringEquals": {"aws:SourceArn": arn}}
        grants = [
            ("s3:GetBucketAcl", self.bucket.bucket_arn),
            ("s3:PutObject", self.bucket.arn_for_objects(f"AWSLogs/{Aws.ACCOUNT_ID}/*")),
        ]
        for action, resource in grants:
            self.bucket.add_to_resource_policy(
                iam.PolicyStatement(principals=[service], actions=[action], resources=[resource], conditions=ours)
            )
        assert self.bucket.policy is not None  # noqa: S101 - statements were just added
        return self.bucket.policy


_TENTH_BY_TENTH = codedeploy.LambdaDeploymentConfig.LINEAR_10_PERCENT_EVERY_3_MINUTES


class Rollout(Construct):
    """CodeDeploy moves the alias during a deployment, and moves it back when one of the alarms is raised."""

    def __init__(self, scope: Construct, id: str, *, alias: lambda_.Alias, brakes: Sequence[cloudwatch.IAlarm]) -> None:
        super().__init__(scope, id)
        group = codedeploy.LambdaDeploymentGroup(
            self, "Group", alias=alias, deployment_config=_TENTH_BY_TENTH, alarms=list(brakes)
        )
        alias.node.add_dependency(group)  # and so on the alarms of the new version
        why = "CodeDeploy moves aliases and reads alarms; AWS keeps the list of what that takes"
        accept_managed(group, "AWSCodeDeployRoleForLambdaLimited", why)
