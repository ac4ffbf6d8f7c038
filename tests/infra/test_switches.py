"""A key of the context that changes on a live system changes nothing that CloudFormation would refuse."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from infra.context import Context, parse, replacing
from tests.infra.synth import CONTEXTS, OWN_KEY, OWN_VPC, Template, templates

pytestmark = pytest.mark.server

SWITCHES = [
    (*(pair if forth else pair[::-1]),)
    for pair in (
        *(("trial", name) for name in CONTEXTS if name != "trial"),
        ("production", "production, vpc, jwt"),
        ("production", "production, bigger"),
        ("private", "private, a VPC and a key of one's own"),
    )
    for forth in (True, False)
]
"""Two contexts of a live system."""
switch = pytest.mark.parametrize(("before", "after"), SWITCHES, ids=str)


def exports(template: Template) -> dict[str, Any]:
    return {
        output["Export"]["Name"]: output["Value"]
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }


@switch
def test_exports_of_the_tables_are_the_same(before: str, after: str):
    """An export that another stack imports cannot be removed, and the stack of the tables is updated first."""
    assert exports(templates(**CONTEXTS[before])["mats-data"]) == exports(templates(**CONTEXTS[after])["mats-data"])


@switch
def test_only_what_is_announced_is_replaced(before: str, after: str):
    replaced = {
        kind
        for stack in ("mats-data", "mats")
        for kind, _ in replacements(templates(**CONTEXTS[before])[stack], templates(**CONTEXTS[after])[stack])
    }
    lasting = replaced & {"AWS::DynamoDB::Table", "AWS::OpenSearchService::Domain", "AWS::SQS::Queue"}
    keys = ("network", "vpc_id", "kms_key_arn")
    domains = [[getattr(parse(CONTEXTS[name]), key) for key in keys] for name in (before, after)]
    assert lasting == (set() if domains[0] == domains[1] else {"AWS::OpenSearchService::Domain"})


@switch
def test_no_replacement_finds_its_name_taken(before: str, after: str):
    """CloudFormation creates before it deletes, so a replaced or a moved resource needs another physical name."""
    for stack in ("mats-data", "mats"):
        old, new = templates(**CONTEXTS[before])[stack], templates(**CONTEXTS[after])[stack]
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


@pytest.mark.parametrize(("context", "said"), [
    (Context(size="production", encoder_model="none"), "alarm_to: nobody hears"),
    (Context(rerank_model="vendor.model-v1:0", encoder_model="none"), "no price of vendor.model-v1:0"),
])  # fmt: skip
def test_alarms_that_nobody_hears_and_prices_that_nobody_knows_are_said_at_synthesis(context: Context, said: str):
    from infra.stacks import notes

    assert [note for note in notes(context) if said in note]
    heard = replace(context, alarm_to="a@example.com", rerank_model="amazon.nova-micro-v1:0")
    assert not [note for note in notes(heard) if said in note]


def test_two_deployments_share_no_physical_name():
    everything = CONTEXTS["production, vpc, jwt"]
    one, other = (
        {key for template in templates(**everything, **named_so).values() for _, key in named(template)}
        for named_so in ({}, {"name": "alpha"})
    )
    assert {
        "AWS::DynamoDB::Table", "AWS::Events::Archive", "AWS::Events::EventBus", "AWS::Logs::LogGroup",
        "AWS::Logs::ResourcePolicy", "AWS::OpenSearchService::Domain", "AWS::SQS::Queue",
    } <= {kind for kind, _ in one}  # fmt: skip
    assert one & other == set()
    assert set(templates(name="alpha", **everything)) == {"alpha", "alpha-data"}


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
