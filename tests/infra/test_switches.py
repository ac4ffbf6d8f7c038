"""A key of the context that changes on a live system changes nothing that CloudFormation would refuse."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from infra.context import Context
from infra.context_check import parse, replacing
from tests.infra.synth import (
    CONSOLE,
    HOST,
    JWT,
    OWN_KEY,
    OWN_VPC,
    PRODUCTION,
    SIGN_IN,
    VPC,
    ZONES,
    Template,
    templates,
)  # fmt: skip

pytestmark = pytest.mark.server

SWITCHES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "callers sign or bear tokens": ({}, JWT),
    "with or without a console": (JWT, CONSOLE),
    "a console that signs people in": (CONSOLE, SIGN_IN),
    "with or without a firewall": ({}, {"waf": "true"}),
    "with or without an audit": ({}, {"audit": "true"}),
    "with or without a host name": ({}, HOST),
    "with or without alarms by mail": ({}, {"alarm_email": "someone@example.com"}),
    "a private API": (VPC, {**VPC, "api": "private"}),
    "callers of other accounts": ({}, {"caller_accounts": "111122223333"}),
    "a rollout in steps": ({}, {"rollout": "linear"}),
    "mail on rejections": ({}, {"rejection_email": "owners@example.com"}),
    "a topic of one's own": ({}, {"alarm_topic_arn": "arn:aws:sns:eu-west-1:123456789012:on-call"}),
    "a trial becomes production": ({}, PRODUCTION),
    "more capacity": (PRODUCTION, {**PRODUCTION, "instance_count": "6", "storage_gb": "500", "throttle_rate": "900"}),
    "the next engine": ({}, {"engine_version": "3.5"}),
    "logs are kept longer": ({}, {"log_retention_days": "365", "log_queries": "hash"}),
    "no models": ({}, {"rerank_model": "none", "writer_model": "none"}),
    "through an inference profile": ({}, {"inference_profile": "eu"}),
    "the account's log role is another's": ({}, {"api_log_role": "keep"}),
    "into a VPC": ({}, VPC),
    "into a VPC of one's own": (VPC, OWN_VPC),
    "a key of one's own": ({}, OWN_KEY),
    "into a VPC, in production": (PRODUCTION, {**PRODUCTION, **VPC, "availability_zones": ZONES}),
}
"""Two contexts of a live system; each switch is also tried in the other direction."""
REPLACES_DOMAIN = {"into a VPC", "into a VPC of one's own", "a key of one's own", "into a VPC, in production"}

BOTH_WAYS = [
    pytest.param(name, *(pair if forth else pair[::-1]), id=f"{name}, {'forth' if forth else 'back'}")
    for name, pair in SWITCHES.items()
    for forth in (True, False)
]
switch = pytest.mark.parametrize(("name", "before", "after"), BOTH_WAYS)


def exports(template: Template) -> dict[str, Any]:
    return {
        output["Export"]["Name"]: output["Value"]
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }


@switch
def test_exports_of_the_tables_are_the_same(name: str, before: dict[str, str], after: dict[str, str]):
    """An export that another stack imports cannot be removed, and the stack of the tables is updated first."""
    assert exports(templates(**before)["mats-data"]) == exports(templates(**after)["mats-data"])


@switch
def test_only_what_is_announced_is_replaced(name: str, before: dict[str, str], after: dict[str, str]):
    replaced = {
        kind
        for stack in ("mats-data", "mats")
        for kind, _ in replacements(templates(**before)[stack], templates(**after)[stack])
    }
    lasting = replaced & {"AWS::DynamoDB::Table", "AWS::OpenSearchService::Domain", "AWS::SQS::Queue"}
    assert lasting == ({"AWS::OpenSearchService::Domain"} if name in REPLACES_DOMAIN else set())


@switch
def test_no_replacement_finds_its_name_taken(name: str, before: dict[str, str], after: dict[str, str]):
    """CloudFormation creates before it deletes, so a replaced or a moved resource needs another physical name."""
    for stack in ("mats-data", "mats"):
        old, new = templates(**before)[stack], templates(**after)[stack]
        for kind, id in replacements(old, new):
            names = [physical_name(template["Resources"][id]) for template in (old, new)]
            assert names[0] is None or names[0] != names[1], (kind, id)
        taken = {key: id for id, key in named(old)}
        assert all(taken.get(key, id) == id for id, key in named(new))


def test_every_key_that_replaces_something_says_so_at_synthesis():
    chosen = {**OWN_VPC, **OWN_KEY, "name": "mats-dev"}
    assert set(replacing(parse(chosen))) == {"name", "network", "vpc_id", "kms_key_arn"}
    assert replacing(parse({})) == {}


def test_an_encoder_without_calibration_is_said_at_synthesis():
    from infra.stacks import notes

    (note,) = notes(Context())
    assert "no calibration is fitted to amazon.titan-embed-text-v2:0" in note
    assert "make calibrate" in note
    assert list(notes(Context(encoder_model="none"))) == [
        "encoder_model: changing it later replaces the index: changes wait until `mats reindex` has made another. "
        'See docs/runbook.md, "Switches on a live system".'
    ]


def test_two_deployments_share_no_physical_name():
    everything = {**PRODUCTION, **SIGN_IN, **HOST, "waf": "true", "audit": "true"}
    one, other = (
        {key for template in templates(name=name, **everything).values() for _, key in named(template)}
        for name in ("alpha", "beta")
    )
    assert {
        "AWS::CloudFront::OriginAccessControl", "AWS::CloudFront::ResponseHeadersPolicy", "AWS::CloudTrail::Trail",
        "AWS::DynamoDB::Table", "AWS::Events::Archive", "AWS::Events::EventBus", "AWS::Logs::LogGroup",
        "AWS::Logs::ResourcePolicy", "AWS::OpenSearchService::Domain", "AWS::Pipes::Pipe", "AWS::SQS::Queue",
        "AWS::WAFv2::WebACL",
    } <= {kind for kind, _ in one}  # fmt: skip
    assert {key for key in one & other if not key[1].startswith(HOST["domain_name"])} == set()
    assert set(templates(name="alpha", **everything)) == {"alpha", "alpha-data"}


# --- what CloudFormation's schemas say ---


def replacements(before: Template, after: Template) -> Iterator[tuple[str, str]]:
    """Type and logical id of what is in both and differs in a property that cannot be updated."""
    for id, old in before["Resources"].items():
        new = after["Resources"].get(id)
        if new is None:
            continue
        assert old["Type"] == new["Type"], f"{id} would change its type, which CloudFormation refuses"
        properties = [resource.get("Properties", {}) for resource in (old, new)]
        if any(
            at(properties[0], path) != at(properties[1], path) for path in schema(old["Type"], "createOnlyProperties")
        ):
            yield old["Type"], id


def named(template: Template) -> Iterator[tuple[str, tuple[str, str]]]:
    """Logical ids, each with type and physical name, of what has a name of its own."""
    for id, resource in template["Resources"].items():
        name = physical_name(resource)
        if name is not None:
            yield id, (resource["Type"], name)


def physical_name(resource: dict[str, Any]) -> str | None:
    """The name that the template gives; None: CloudFormation makes one."""
    service_kind, properties = resource["Type"], resource.get("Properties", {})
    kind = service_kind.split("::")[-1]
    if service_kind in _NAMED_WITHIN:
        return None
    paths = ("Name", f"{kind}Name", "PolicyName", f"{kind}Config/Name")
    names = [at(properties, path) for path in paths]
    found = [json.dumps(name) if isinstance(name, dict) else str(name) for name in names if name is not None]
    return "/".join(found) or None


_NAMED_WITHIN = {"AWS::Lambda::Alias", "AWS::ApiGateway::Authorizer", "AWS::ApiGateway::Stage", "AWS::IAM::Policy"}
"""Their names are unique within the resource that they belong to."""


def at(properties: dict[str, Any], path: str) -> Any:
    found: Any = properties
    for part in path.removeprefix("/properties/").split("/"):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def schema(kind: str, what: str) -> list[str]:
    """A list of properties in the schema of a resource type, as cfn-lint ships it."""
    if kind.startswith("Custom::") or kind == "AWS::CDK::Metadata":
        return []
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    found = PROVIDER_SCHEMA_MANAGER.get_resource_schema(region="us-east-1", resource_type=kind).schema.get(what, [])
    return list(found)
