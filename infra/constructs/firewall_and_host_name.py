"""Optional parts in front of the API: AWS WAF, and a custom host name."""

from typing import Any

from aws_cdk import CfnOutput
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_wafv2 as wafv2
from constructs import Construct

_CALLS_IN_FIVE_MINUTES = 2000  # Rate limit of one client address
_READ_AS_TEXT = (
    "SizeRestrictions_BODY", "CrossSiteScripting_BODY", "GenericLFI_BODY", "GenericRFI_BODY", "EC2MetaDataSSRF_BODY",
)  # fmt: skip
"""Rules that would block queries about such topics. A query is never executed, so they only count."""


def firewall(
    scope: Construct, api: apigateway.RestApi, name: str, *, caller_limit: int = 0, credential: str = ""
) -> wafv2.CfnWebACL:
    """AWS WAF: common rules, known bad input, a limit of calls for each client address, and one for each credential.

    The header `credential` has it: a bearer token, or the session token of a role. A call without one is not counted.
    Usage plans count API keys, so each caller would need one beside its credentials.
    """
    key = {"header": {"name": credential, "textTransformations": [{"priority": 0, "type": "NONE"}]}}
    of_caller = {"limit": caller_limit, "aggregateKeyType": "CUSTOM_KEYS", "customKeys": [key]}
    acl = wafv2.CfnWebACL(
        scope,
        "Firewall",
        name=name,
        scope="REGIONAL",
        default_action={"allow": {}},
        visibility_config=_visible(name),
        rules=[
            _managed_rule(0, "AWSManagedRulesCommonRuleSet", _READ_AS_TEXT),
            _managed_rule(1, "AWSManagedRulesKnownBadInputsRuleSet"),
            _rate_rule(2, "rate", {"limit": _CALLS_IN_FIVE_MINUTES, "aggregateKeyType": "IP"}),
            *([_rate_rule(3, "caller", of_caller)] if caller_limit else []),
        ],
    )
    wafv2.CfnWebACLAssociation(
        scope, "FirewallInFront", resource_arn=api.deployment_stage.stage_arn, web_acl_arn=acl.attr_arn
    )
    return acl


def custom_domain(scope: Construct, api: apigateway.RestApi, host_name: str, certificate_arn: str) -> str:
    """Add a custom host name and return the address. The DNS record to the output target is created by hand."""
    domain = apigateway.DomainName(
        scope,
        "DomainName",
        domain_name=host_name,
        certificate=acm.Certificate.from_certificate_arn(scope, "Certificate", certificate_arn),
        endpoint_type=apigateway.EndpointType.REGIONAL,
        security_policy=apigateway.SecurityPolicy.TLS_1_2,
        mapping=api,
    )
    CfnOutput(scope, "Target", value=domain.domain_name_alias_domain_name).override_logical_id("DomainTarget")
    return f"https://{host_name}/"


def _rate_rule(priority: int, name: str, statement: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "priority": priority,
        "action": {"block": {}},
        "statement": {"rateBasedStatement": {**statement, "evaluationWindowSec": 300}},
        "visibilityConfig": _visible(name),
    }


def _managed_rule(priority: int, name: str, counted: tuple[str, ...] = ()) -> dict[str, Any]:
    overrides = [{"name": rule, "actionToUse": {"count": {}}} for rule in counted]
    return {
        "name": name,
        "priority": priority,
        "overrideAction": {"none": {}},
        "statement": {
            "managedRuleGroupStatement": {"vendorName": "AWS", "name": name, "ruleActionOverrides": overrides}
        },
        "visibilityConfig": _visible(name),
    }


def _visible(name: str) -> dict[str, Any]:
    return {"cloudWatchMetricsEnabled": True, "sampledRequestsEnabled": True, "metricName": name}
