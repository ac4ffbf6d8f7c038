"""Private subnets without a route to the Internet, and endpoints of the services that the functions call."""

from collections.abc import Sequence

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

_HTTPS = ec2.Port.tcp(443)


class Network(Construct):
    """Functions may connect to the domain and to endpoints; nothing may connect to them."""

    def __init__(self, scope: Construct, id: str, *, zones: Sequence[str]) -> None:
        super().__init__(scope, id)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            availability_zones=list(zones),
            nat_gateways=0,
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(name="private", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=24)
            ],
            flow_logs={
                "Rejected": ec2.FlowLogOptions(
                    destination=ec2.FlowLogDestination.to_cloud_watch_logs(self._log()),
                    traffic_type=ec2.FlowLogTrafficType.REJECT,
                )
            },
        )
        self.subnets = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
        self.functions = self._group("Functions", "The functions of mats")
        self.domain = self._group("Domain", "The OpenSearch domain of mats")
        self._endpoints = self._group("Endpoints", "Endpoints of services that mats calls")
        for answering in (self.domain, self._endpoints):
            self.functions.connections.allow_to(answering, _HTTPS)
        # DynamoDB's gateway has no security group; from here nothing else on the Internet has a route.
        self.functions.add_egress_rule(ec2.Peer.any_ipv4(), _HTTPS, "DynamoDB through its gateway")
        self._interface("Bedrock", ec2.InterfaceVpcEndpointAwsService.BEDROCK_RUNTIME, "bedrock:InvokeModel")
        self._interface("Events", ec2.InterfaceVpcEndpointAwsService.EVENTBRIDGE, "events:PutEvents")
        gateway = self.vpc.add_gateway_endpoint("DynamoDb", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB)
        gateway.add_to_policy(_only_from_here("dynamodb:*"))

    def _interface(self, id: str, service: ec2.InterfaceVpcEndpointAwsService, action: str) -> None:
        endpoint = self.vpc.add_interface_endpoint(
            id, service=service, subnets=self.subnets, security_groups=[self._endpoints], open=False
        )
        endpoint.add_to_policy(_only_from_here(action))

    def _group(self, id: str, description: str) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(self, id, vpc=self.vpc, description=description, allow_all_outbound=False)

    def _log(self) -> logs.LogGroup:
        return logs.LogGroup(
            self, "FlowLog", retention=logs.RetentionDays.ONE_MONTH, removal_policy=RemovalPolicy.DESTROY
        )


def _only_from_here(action: str) -> iam.PolicyStatement:
    """Restrict an endpoint to principals of this account; their own policies restrict the rest."""
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=[action],
        resources=["*"],
        conditions={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
    )
