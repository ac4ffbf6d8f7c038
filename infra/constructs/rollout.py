"""A new version of discovery takes over in steps."""

from collections.abc import Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.nag import AWS_POLICIES, accept_each

STEPS = {
    "canary": codedeploy.LambdaDeploymentConfig.CANARY_10_PERCENT_5_MINUTES,
    "linear": codedeploy.LambdaDeploymentConfig.LINEAR_10_PERCENT_EVERY_1_MINUTE,
}


class Rollout(Construct):
    """CodeDeploy moves the alias during a deployment, and moves it back when one of the alarms is raised."""

    def __init__(
        self, scope: Construct, id: str, *, alias: lambda_.Alias, steps: str, brakes: Sequence[cloudwatch.IAlarm]
    ) -> None:
        super().__init__(scope, id)
        group = codedeploy.LambdaDeploymentGroup(
            self, "Group", alias=alias, deployment_config=STEPS[steps], alarms=list(brakes)
        )
        accept_each(
            group,
            {
                f"IAM4[Policy::{AWS_POLICIES}/AWSCodeDeployRoleForLambdaLimited]": (
                    "CodeDeploy moves aliases and reads alarms; AWS keeps the list of what that takes"
                )
            },
        )
