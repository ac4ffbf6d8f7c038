"""Private subnets without a route to the Internet, and endpoints of the services that the functions call."""

from collections.abc import Sequence

from aws_cdk import Aws
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.nag import accept
from infra.constructs.shared import Shared

_HTTPS = ec2.Port.tcp(443)


class Network(Construct):
    """Functions may connect to the domain and to endpoints; nothing may connect to them."""

    def __init__(
        self, scope: Construct, id: str, *, shared: Shared, zones: list[str], vpc_id: str = "", subnets: Sequence[str]
    ) -> None:
        """Use subnets of the VPC with this id, which has endpoints and flow logs of its own; without an id make one."""
        super().__init__(scope, id)
        self.vpc: ec2.IVpc = (
            self._new_vpc(shared, zones)
            if not vpc_id
            else ec2.Vpc.from_vpc_attributes(
                self, "Vpc", vpc_id=vpc_id, availability_zones=zones, isolated_subnet_ids=[*subnets]
            )
        )
        self.subnets = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
        self.functions = self._group("Functions", "The functions of mats")
        self.domain = self._group("Domain", "The OpenSearch domain of mats")
        self.functions.connections.allow_to(self.domain, _HTTPS)
        # DynamoDB's gateway has no security group. In a VPC created here nothing else on the Internet has a route.
        self.functions.add_egress_rule(ec2.Peer.any_ipv4(), _HTTPS, "DynamoDB through its gateway")
        if not vpc_id:  # private DNS allows no second endpoint of a service
            self._add_endpoints()

    def _new_vpc(self, shared: Shared, zones: list[str]) -> ec2.Vpc:
        return ec2.Vpc(
            self,
            "Vpc",
            availability_zones=zones,
            nat_gateways=0,
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(name="private", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=24)
            ],
            flow_logs={
                "Rejected": ec2.FlowLogOptions(
                    destination=ec2.FlowLogDestination.to_cloud_watch_logs(shared.log_group(self, "FlowLog")),
                    traffic_type=ec2.FlowLogTrafficType.REJECT,
                )
            },
        )

    def _add_endpoints(self) -> None:
        self._endpoints = self._group("Endpoints", "Endpoints of services that mats calls")
        self.functions.connections.allow_to(self._endpoints, _HTTPS)
        self._interface("Bedrock", ec2.InterfaceVpcEndpointAwsService.BEDROCK_RUNTIME, "bedrock:InvokeModel")
        self._interface("Events", ec2.InterfaceVpcEndpointAwsService.EVENTBRIDGE, "events:PutEvents")
        gateway = self.vpc.add_gateway_endpoint("DynamoDb", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB)
        gateway.add_to_policy(_only_from_here("dynamodb:*"))

    def api_endpoint(self, given: str = "") -> ec2.IVpcEndpoint:
        """The endpoint through which a private API is called from within the VPC: the given one, else a new one."""
        if given:
            return ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
                self, "GivenEndpoint", vpc_endpoint_id=given, port=443
            )
        callers = self._group("Callers", "Whoever in the VPC calls the API of mats")
        accept(callers, EC23="Calls come from the VPC's own addresses; the rule cannot read them before deployment")
        callers.add_ingress_rule(ec2.Peer.ipv4(self.vpc.vpc_cidr_block), _HTTPS, "Calls from the VPC")
        return self.vpc.add_interface_endpoint(
            "Api",
            service=ec2.InterfaceVpcEndpointAwsService.APIGATEWAY,
            subnets=self.subnets,
            security_groups=[callers],
            open=False,
        )

    def _interface(self, id: str, service: ec2.InterfaceVpcEndpointAwsService, action: str) -> None:
        endpoint = self.vpc.add_interface_endpoint(
            id, service=service, subnets=self.subnets, security_groups=[self._endpoints], open=False
        )
        endpoint.add_to_policy(_only_from_here(action))

    def _group(self, id: str, description: str) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(self, id, vpc=self.vpc, description=description, allow_all_outbound=False)


def _only_from_here(action: str) -> iam.PolicyStatement:
    """Restrict an endpoint to principals of this account; their own policies restrict the rest."""
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=[action],
        resources=["*"],
        conditions={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
    )
