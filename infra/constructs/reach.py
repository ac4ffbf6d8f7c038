"""From where the API can be called: the Internet or a VPC, this account or others."""

from aws_cdk import Aws
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.network import Network
from infra.context import Context


def private_endpoint(scope: Construct, context: Context, network: Network | None) -> ec2.IVpcEndpoint | None:
    """The VPC endpoint of a private API: one that the context names, else a new one. None: the API is public."""
    if context.api != "private" or network is None:
        return None
    if not context.api_endpoint_id:
        return network.add_api_endpoint()
    return ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        scope, "GivenEndpoint", vpc_endpoint_id=context.api_endpoint_id, port=443
    )


def endpoint_configuration(endpoint: ec2.IVpcEndpoint | None) -> apigateway.EndpointConfiguration:
    """A regional address, or one that only the VPC's endpoint reaches."""
    if endpoint is None:
        return apigateway.EndpointConfiguration(types=[apigateway.EndpointType.REGIONAL])
    return apigateway.EndpointConfiguration(types=[apigateway.EndpointType.PRIVATE], vpc_endpoints=[endpoint])


def resource_policy(context: Context, endpoint: ec2.IVpcEndpoint | None) -> iam.PolicyDocument | None:
    """The policy of the API itself; None where it needs none.

    Principals of this account need only a policy of their own. Those of other accounts need this one as well. A private
    API refuses everybody without a policy.
    """
    through = {"aws:SourceVpce": endpoint.vpc_endpoint_id} if endpoint else {}
    others: list[dict[str, object]] = []
    if context.caller_accounts:
        others.append({"aws:PrincipalAccount": list(context.caller_accounts)})
    if context.caller_organization:
        others.append({"aws:PrincipalOrgID": context.caller_organization})
    if not (endpoint or others):
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
