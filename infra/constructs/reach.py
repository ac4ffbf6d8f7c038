"""From where the API can be called: the Internet or a VPC, this account or others."""

from aws_cdk import Aws
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.network import Network
from infra.context import Context


def endpoint_configuration(
    scope: Construct, context: Context, network: Network | None
) -> apigateway.EndpointConfiguration:
    """A regional address, or one that only the VPC's endpoint reaches."""
    endpoint = _endpoint(scope, context, network)
    if endpoint is None:
        return apigateway.EndpointConfiguration(types=[apigateway.EndpointType.REGIONAL])
    return apigateway.EndpointConfiguration(types=[apigateway.EndpointType.PRIVATE], vpc_endpoints=[endpoint])


def resource_policy(scope: Construct, context: Context, network: Network | None) -> iam.PolicyDocument | None:
    """Who may call besides this account's own principals; none: nobody.

    A principal of this account needs its own policy only. One of another account needs its own policy and this one. A
    private API lets nobody in without a policy.
    """
    private = _endpoint(scope, context, network)
    through = {"aws:SourceVpce": private.vpc_endpoint_id} if private else {}
    others: list[dict[str, object]] = []
    if context.caller_accounts:
        others.append({"aws:PrincipalAccount": list(context.caller_accounts)})
    if context.caller_organization:
        others.append({"aws:PrincipalOrgID": context.caller_organization})
    if not (private or others):
        return None
    own: list[dict[str, object]] = [{"aws:PrincipalAccount": Aws.ACCOUNT_ID}] if context.auth == "iam" else [{}]
    return iam.PolicyDocument(
        statements=[
            iam.PolicyStatement(
                principals=[iam.StarPrincipal()],
                actions=["execute-api:Invoke"],
                resources=["execute-api:/*"],
                conditions={"StringEquals": {**who, **through}} if who or through else None,
            )
            for who in (*own, *others)
        ]
    )


def _endpoint(scope: Construct, context: Context, network: Network | None) -> ec2.IVpcEndpoint | None:
    if context.api != "private" or network is None:
        return None
    if not context.api_endpoint_id:
        return network.api_endpoint()
    known = scope.node.try_find_child("GivenEndpoint")
    return known or ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(  # type: ignore[return-value]
        scope, "GivenEndpoint", vpc_endpoint_id=context.api_endpoint_id, port=443
    )
