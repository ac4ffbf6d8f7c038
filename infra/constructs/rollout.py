"""How a new version of a function takes over."""

from collections.abc import Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.nag import accept_managed

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
