"""Discovery: the REST API and the function behind it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aws_cdk import Aws, CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.function import DEFAULTS, Foundation, Function, Values
from infra.constructs.nag import accept, accept_managed
from infra.constructs.shared import allow
from infra.layers import wheels_layer
from infra.vendor import JWT
from mats.edge.ard.entries import error_code
from mats.edge.routes import ROUTES
from mats.settings import Settings

STAGE = "live"
TIMEOUT_S = 10  # Three times the sum of the budgets: the first call after a SnapStart restore may be slow
_MEMORY_MB = 1769  # From this size Lambda gives a whole core; lexical search and encoding run in parallel
_FEEDBACK = "/feedback"
CALLS = tuple(
    dict.fromkeys((method, route.path) for route in ROUTES for method in (route.method, *route.refused_methods))
)
"""The methods of the API, each with its path."""


def wildcard(path: str) -> str:
    """A path of CALLS as policies spell it, with `*` for what is in braces."""
    return re.sub(r"\{.*\}", "*", path)


_REPORT_S = 15  # A transaction that meets many others is tried again for a few seconds


class FeedbackFunction(Construct):
    """Reads receipts and writes outcomes; it reaches neither the index nor a model."""

    def __init__(self, scope: Construct, id: str, *, on: Foundation, settings: Values = DEFAULTS) -> None:
        super().__init__(scope, id)
        tables = on.tables
        environment = Settings(metrics=on.metrics, **settings, **tables.settings("receipts", "outcomes")).to_env()
        made = Function(
            self, "Feedback", on=on, folder="feedback", environment=environment, memory_mb=1024, timeout_s=_REPORT_S
        )
        self.function = made.function
        tables.receipts.grant(made.role, "dynamodb:GetItem")
        calls = [f"dynamodb:{call}" for call in ("Query", "PutItem", "UpdateItem")]
        made.allow([allow(*calls, on=tables.outcomes.table_arn)])
        CfnOutput(self, "Name", value=made.function.function_name).override_logical_id("FeedbackFunction")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryProps:
    """Who may call the API, from where, and how often; and the settings of the function."""

    tokens: Mapping[str, Any] | None = None  # The settings `jwt_*` of whose tokens callers bear; None: they sign
    callers: Sequence[str] = ()  # Other accounts whose principals may call, and organizations
    endpoint: ec2.IVpcEndpoint | None = None  # Of a VPC, the only way to a private API
    throttle_rate: int = 20  # Calls in a second, all callers together
    sets_log_role: bool = True  # The account's, through which API Gateway writes the logs of all APIs
    snap_start: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)  # Others of the function


class DiscoveryApi(Construct):
    """The function, its alias that starts from a snapshot, and the API in front of it."""

    def __init__(
        self, scope: Construct, id: str, *, on: Foundation, feedback: FeedbackFunction, props: DiscoveryProps
    ) -> None:
        super().__init__(scope, id)
        models, tables, signed = on.models, on.tables, props.tokens is None
        environment = on.environment(**props.settings, **tables.settings("receipts", *(["callers"] if signed else [])))
        made = Function(
            self,
            "Discovery",
            on=on,
            folder="discovery",
            environment=environment,
            memory_mb=_MEMORY_MB,
            timeout_s=TIMEOUT_S,
            snap_start=props.snap_start,
            keeps_versions=True,
        )
        self.function, self.log = made.function, made.log
        on.domain.grant(made.role, "discovery")
        made.allow([*models.statements(models.chosen.reranker), *models.encoder_statements()])
        tables.receipts.grant(made.role, "dynamodb:PutItem")
        if signed:
            tables.callers.grant(made.role, "dynamodb:GetItem")
        self.alias = made.live(self)
        self.api = self._api(on, props)
        for method, path in CALLS:
            function, timeout_s = (self.alias, TIMEOUT_S) if path != _FEEDBACK else (feedback.function, _REPORT_S)
            integration = apigateway.LambdaIntegration(
                function, allow_test_invoke=False, timeout=Duration.seconds(timeout_s + 1)
            )
            self.api.root.resource_for_path(path).add_method(method, integration)
        _set_gateway_errors(self.api, signed=signed)
        CfnOutput(self, "Url", value=self.api.url).override_logical_id("ApiUrl")
        CfnOutput(self, "Name", value=made.function.function_name).override_logical_id("DiscoveryFunction")
        self._accept(props)

    def _api(self, on: Foundation, props: DiscoveryProps) -> apigateway.RestApi:
        rate, endpoint = props.throttle_rate, props.endpoint
        policy = _resource_policy(props)
        api = apigateway.RestApi(
            self,
            "Api",
            rest_api_name=on.shared.name,
            description="Finds the model, agent, tool or skill for a request, and invokes nothing",
            endpoint_configuration=apigateway.EndpointConfiguration(
                types=[apigateway.EndpointType.PRIVATE if endpoint else apigateway.EndpointType.REGIONAL],
                vpc_endpoints=[endpoint] if endpoint else None,
            ),
            policy=policy,
            cloud_watch_role=props.sets_log_role,
            # a setting of the account, which others may use
            cloud_watch_role_removal_policy=RemovalPolicy.RETAIN if props.sets_log_role else None,
            default_method_options=self._auth(on, props.tokens),
            deploy_options=apigateway.StageOptions(
                stage_name=STAGE,
                throttling_rate_limit=rate,
                throttling_burst_limit=2 * rate,
                logging_level=apigateway.MethodLoggingLevel.ERROR,
                data_trace_enabled=False,
                tracing_enabled=True,
                metrics_enabled=False,  # of each method: the stage's own, which alarms and graphs read, cost nothing
                access_log_destination=apigateway.LogGroupLogDestination(on.shared.log_group(self, "AccessLog")),
                access_log_format=apigateway.AccessLogFormat.custom(_ACCESS),
            ),
        )
        if policy and api.latest_deployment:  # a stage takes another policy only with another deployment
            api.latest_deployment.add_to_logical_id(policy.to_json())
        return api

    def _auth(self, on: Foundation, tokens: Mapping[str, Any] | None) -> apigateway.MethodOptions:
        if tokens is None:
            return apigateway.MethodOptions(authorization_type=apigateway.AuthorizationType.IAM)
        self.authorizer = Function(
            self,
            "Authorizer",
            on=on,
            folder="authorizer",
            environment=Settings(**tokens).to_env(),
            memory_mb=512,
            timeout_s=10,
            packages=[wheels_layer(self, JWT)],
            in_network=False,
        )
        checks = apigateway.TokenAuthorizer(
            self, "Tokens", handler=self.authorizer.function, results_cache_ttl=Duration.minutes(5)
        )
        return apigateway.MethodOptions(authorization_type=apigateway.AuthorizationType.CUSTOM, authorizer=checks)

    def _accept(self, props: DiscoveryProps) -> None:
        accept(
            self.api,
            APIG2="Bodies are validated in the function, by the one schema that also answers locally",
            COG4="Callers sign with SigV4 or bear tokens of an issuer of their own; there is no Cognito user pool",
        )
        accept(self.api, APIG3="Every call is authorized and throttled; a web ACL is the account's: docs/aws.md")
        if props.sets_log_role:
            why = "API Gateway has one role for the logs of all APIs of an account; AWS keeps what it needs"
            accept_managed(self.api, "AmazonAPIGatewayPushToCloudWatchLogs", why)


# --- from where the API can be called: the Internet or a VPC, this account or others ---


def _resource_policy(props: DiscoveryProps) -> iam.PolicyDocument | None:
    """The policy of the API itself; None where it needs none.

    Principals of this account need only a policy of their own. Those of other accounts need this one as well. A private
    API refuses everybody without a policy.
    """
    through = {"aws:SourceVpce": props.endpoint.vpc_endpoint_id} if props.endpoint else {}
    others: list[dict[str, object]] = []
    for key, are_organizations in (("aws:PrincipalAccount", False), ("aws:PrincipalOrgID", True)):
        if chosen := [each for each in props.callers if each.startswith("o-") is are_organizations]:
            others.append({key: chosen})
    if not (props.endpoint or others):
        return None
    own: list[dict[str, object]] = [{"aws:PrincipalAccount": Aws.ACCOUNT_ID}] if props.tokens is None else [{}]
    policy = iam.PolicyDocument()
    for who in (*own, *others):
        may = iam.PolicyStatement(
            principals=[iam.StarPrincipal()],
            actions=["execute-api:Invoke"],
            resources=["execute-api:/*"],
            conditions={"StringEquals": {**who, **through}} if who or through else None,
        )
        policy.add_statements(may)
    return policy


# --- errors of API Gateway itself ---

_TYPE = apigateway.ResponseType
_RETRY = {"Retry-After": "'1'"}


def _set_gateway_errors(api: apigateway.RestApi, *, signed: bool) -> None:
    """Set a problem of RFC 9457 as the body of every gateway response, as of every other error of the API.

    A gateway response is the same for all paths, so it also has the members of an error of Agentic Resource Discovery.
    Where callers sign with SigV4, API Gateway cannot tell an unsigned call from one to an unknown path.
    """
    every = json.loads(Path(__file__).with_name("gateway_errors.json").read_text("utf-8"))
    for kind, status, title, detail in [*every["all"], *every["signed" if signed else "tokens"]]:
        problem = {"type": "about:blank", "title": title, "status": status, "detail": detail, "errors": []}
        error = {"errorCode": error_code(status), "message": detail}
        _answer(api, getattr(_TYPE, kind), json.dumps(problem | error), status=status)
    others = ((_TYPE.DEFAULT_4_XX, 400, "Bad Request"), (_TYPE.DEFAULT_5_XX, 500, "Internal Server Error"))
    for kind, status, title in others:
        open_ended = json.dumps({"type": "about:blank", "title": title, "errors": [], "errorCode": error_code(status)})
        message = "$context.error.messageString"
        _answer(api, kind, f'{open_ended[:-1]}, "detail": {message}, "message": {message}}}')


def _answer(api: apigateway.RestApi, kind: apigateway.ResponseType, body: str, *, status: int | None = None) -> None:
    """Set one gateway response; without a status it keeps its default one."""
    headers = {"Content-Type": "'application/problem+json'", **(_RETRY if status in (429, 503) else {})}
    api.add_gateway_response(
        kind.response_type.title().replace("_", ""),
        type=kind,
        status_code=str(status) if status else None,
        response_headers=headers,
        templates={"application/json": body},
    )


# --- rights and logs ---


_ACCESS = (
    '{"requestId": "$context.requestId", "time": "$context.requestTime", "caller": "$context.identity.userArn", '
    '"principal": "$context.authorizer.principalId", "ip": "$context.identity.sourceIp", '
    '"trace": "$context.xrayTraceId", "method": "$context.httpMethod", "path": "$context.resourcePath", '
    '"status": "$context.status", '
    '"ms": "$context.responseLatency", "discoveryMs": "$context.integrationLatency", '
    '"bytes": "$context.responseLength", "error": "$context.error.responseType", "waf": "$context.wafResponseCode"}'
)
