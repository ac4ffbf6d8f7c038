"""What may stand in front of the API: a firewall, and a host name of one's own."""

from typing import Any

from aws_cdk import CfnOutput
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_wafv2 as wafv2
from constructs import Construct

from infra.context import Context

_CALLS_IN_FIVE_MINUTES = 2000
"""From one address."""
_READ_AS_TEXT = (
    "SizeRestrictions_BODY", "CrossSiteScripting_BODY", "GenericLFI_BODY", "GenericRFI_BODY", "EC2MetaDataSSRF_BODY",
)  # fmt: skip
"""Rules that would block queries about such things. A query is never run, so they only count."""


def firewall(scope: Construct, api: apigateway.RestApi) -> wafv2.CfnWebACL:
    """AWS WAF: its common rules, known bad input, and a limit for each address."""
    acl = wafv2.CfnWebACL(
        scope,
        "Firewall",
        name="mats",
        scope="REGIONAL",
        default_action={"allow": {}},
        visibility_config=_visible("mats"),
        rules=[
            _managed(0, "AWSManagedRulesCommonRuleSet", _READ_AS_TEXT),
            _managed(1, "AWSManagedRulesKnownBadInputsRuleSet"),
            {
                "name": "rate",
                "priority": 2,
                "action": {"block": {}},
                "statement": {"rateBasedStatement": {"limit": _CALLS_IN_FIVE_MINUTES, "aggregateKeyType": "IP"}},
                "visibilityConfig": _visible("rate"),
            },
        ],
    )
    wafv2.CfnWebACLAssociation(
        scope, "FirewallInFront", resource_arn=api.deployment_stage.stage_arn, web_acl_arn=acl.attr_arn
    )
    return acl


def custom_domain(scope: Construct, api: apigateway.RestApi, context: Context) -> str:
    """The API under a host name of one's own; its address. The DNS record is made by hand, to the target put out."""
    domain = apigateway.DomainName(
        scope,
        "DomainName",
        domain_name=context.domain_name,
        certificate=acm.Certificate.from_certificate_arn(scope, "Certificate", context.certificate_arn),
        endpoint_type=apigateway.EndpointType.REGIONAL,
        security_policy=apigateway.SecurityPolicy.TLS_1_2,
        mapping=api,
    )
    CfnOutput(scope, "Target", value=domain.domain_name_alias_domain_name).override_logical_id("DomainTarget")
    return f"https://{context.domain_name}/"


def _managed(priority: int, name: str, counted: tuple[str, ...] = ()) -> dict[str, Any]:
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
