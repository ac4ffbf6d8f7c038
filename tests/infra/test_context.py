"""The keys of the context, and the errors of invalid values."""

import json
import re

import pytest

from infra import inference_profiles
from infra.context import KEYS, SETTINGS, Context, ContextInvalid, check_region, parse
from infra.vendor import ROOT
from mats.settings import Settings
from tests.infra.synth import JWT, PRODUCTION, VPC, ZONES

NAMES = {key.name for key in (*KEYS, *SETTINGS)}


def faults(**given: object) -> list[str]:
    with pytest.raises(ContextInvalid) as caught:
        parse(given)
    return caught.value.faults


def test_the_defaults_of_cdk_json_are_the_defaults():
    assert parse(json.loads((ROOT / "cdk.json").read_text())["context"]) == parse({}) == Context()


def test_a_command_line_gives_texts_and_a_file_json():
    chosen = parse({"masters": "true", "size": "production", "network": "vpc", "availability_zones": ZONES})
    assert (chosen.masters, chosen.production, chosen.availability_zones) == (True, True, tuple(ZONES.split(",")))
    given = {"masters": True, **PRODUCTION, "network": "vpc", "availability_zones": ZONES.split(",")}
    assert parse(given) == parse({"masters": "true", **PRODUCTION, "network": "vpc", "availability_zones": ZONES})


def test_keys_of_the_cdk_are_ignored():
    given = {"aws:cdk:bundling-stacks": [], "@aws-cdk/core:newStyle": True, "cli/telemetry": False}
    assert parse(given) == Context()


def test_every_fault_is_named_at_once():
    found = faults(size="huge", network="mesh", masters="perhaps", auth="jwt", nextwork="vpc")
    assert len(found) == 6
    for part in ("size", "network", "masters", "jwt_issuer", "jwt_audience", "nextwork"):
        assert any(part in fault for fault in found), part


def test_a_setting_with_a_stack_is_a_key_and_reaches_its_functions():
    given = {"learning": "off", "receipt_days": "7", "enrich": "all"}
    context = parse(given)
    assert context.settings == Settings(learning="off", receipt_days=7, enrich="all")
    assert context.settings_of("discovery").keys() >= {"learning", "receipt_days"}
    assert context.settings_of("enrichment") == {"enrich": "all"}
    assert context.settings_of("learning") == {}


@pytest.mark.parametrize(
    ("key", "given"),
    [
        # forms of single keys
        ("alarm_to", {"alarm_to": "nobody"}),
        ("size", {"size": 3}),
        ("name", {"name": "Mats"}),
        ("name", {"name": "a--b"}),
        ("name", {"name": "a" * 17}),
        ("caller_accounts", {"caller_accounts": "1234"}),
        ("caller_accounts", {"caller_accounts": "o-acme"}),
        ("rollout", {"rollout": "boldly"}),
        ("spend_per_hour", {"spend_per_hour": -1}),
        ("instance_type", {"instance_type": "r7g.large"}),
        ("storage_gb", {"storage_gb": 5}),
        ("throttle_rate", {"throttle_rate": -1}),
        ("log_retention_days", {"log_retention_days": 91}),
        ("log_retention_days", {"log_retention_days": 0}),
        ("log_queries", {"log_queries": "never"}),
        ("receipt_days", {"receipt_days": 366}),
        ("kms_key_arn", {"kms_key_arn": "alias/mats"}),
        # the network
        ("availability_zones", {"availability_zones": "eu-west-1a"}),
        ("network", {"network": "vpc"}),
        ("size", {**VPC, "size": "small"}),
        ("instance_type", {"size": "small", "instance_type": "r7g.large.search"}),
        ("network", {"network": "vpc", "size": "production", "availability_zones": "eu-west-1a"}),
        ("availability_zones", {"network": "vpc", "availability_zones": "eu-west-1"}),
        ("availability_zones", {**PRODUCTION, **VPC, "availability_zones": "eu-west-1a,eu-west-1a,eu-west-1b"}),
        ("vpc_id", {"vpc_id": "vpc-1a"}),
        ("vpc_id", {**VPC, "vpc_id": "mine", "subnet_ids": "subnet-1a"}),
        ("vpc_id", {**VPC, "vpc_id": "vpc-1a"}),
        ("subnet_ids", {**VPC, "subnet_ids": "subnet-1a"}),
        ("subnet_ids", {**VPC, "vpc_id": "vpc-1a", "subnet_ids": "net-1a"}),
        # the API
        ("auth", {**JWT, "jwt_issuer": "http://issuer.example.com"}),
        ("jwt_claim", {**JWT, "jwt_claim": ""}),
        ("jwt_audience", {"jwt_audience": "mats"}),
        ("caller_accounts", {**JWT, "caller_accounts": "o-a1b2c3d4e5"}),
        ("api", {"api": "private"}),
        ("api", {**VPC, "vpc_id": "vpc-1a", "subnet_ids": "subnet-1a", "api": "private"}),
        ("api_endpoint_id", {"api_endpoint_id": "vpce-1a"}),
        # the models
        ("rerank_model", {"rerank_model": "us.amazon.nova-micro-v1:0"}),
        ("writer_model", {"writer_model": "Nova"}),
        ("encoder_model", {"encoder_model": "cohere.embed-english-v3"}),
        ("inference_profile", {"inference_profile": "mars"}),
        ("inference_profile", {"inference_profile": "us:nowhere"}),
        ("inference_profile", {"inference_profile": "global", "rerank_model": "none"}),
    ],
    ids=str,
)
def test_an_invalid_context_names_the_key(key: str, given: dict[str, object]):
    assert [re.match(r"\w+", fault)[0] for fault in faults(**given)] == [key]


HERE = {"partition": "aws", "region": "eu-west-1", "account": "123456789012"}
NOVA = "amazon.nova-micro-v1:0"


@pytest.mark.parametrize(
    ("profile", "directly", "through", "id"),
    [
        ("", f"arn:aws:bedrock:eu-west-1::foundation-model/{NOVA}", [], NOVA),
        (
            "us:us-east-1,us-west-2",
            f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/us.{NOVA}",
            ["us-east-1", "us-west-2"],
            f"us.{NOVA}",
        ),
        (
            "global",
            f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/global.{NOVA}",
            ["eu-west-1", ""],
            f"global.{NOVA}",
        ),
    ],
    ids=["directly", "named regions", "global"],
)
def test_a_model_is_allowed_by_its_arn_or_its_profile_and_the_regions_behind_it(profile, directly, through, id):
    chosen = inference_profiles.InferenceProfile.parse(profile) if profile else None
    behind = [f"arn:aws:bedrock:{region}::foundation-model/{NOVA}" for region in through]
    assert inference_profiles.arns(NOVA, chosen, **HERE) == ([directly], behind)
    assert inference_profiles.invoked_as(NOVA, chosen) == id
    assert inference_profiles.arns("none", chosen, **HERE) == ([], [])
    assert inference_profiles.invoked_as("none", chosen) == "none"


@pytest.mark.parametrize(
    ("region", "given", "models"),
    [
        ("me-central-1", {}, 2),
        ("ca-central-1", {"rerank_model": "none"}, 1),
        ("us-west-2", {"inference_profile": "none"}, 2),
        ("eu-west-1", {"inference_profile": "us"}, 0),
        ("us-east-1", {"inference_profile": "apac"}, 0),
    ],
    ids=str,
)
def test_a_region_refuses_models_it_cannot_invoke(region: str, given: dict[str, object], models: int):
    with pytest.raises(ContextInvalid) as caught:
        check_region(parse(given), region)
    (fault,) = caught.value.faults
    assert region in fault
    assert "inference_profile" in fault
    assert fault.count("amazon.nova") == models


@pytest.mark.parametrize(
    ("region", "given"),
    [
        *((region, {}) for region in inference_profiles.FAMILIES[0].regions),
        ("me-central-1", {"rerank_model": "none", "writer_model": "none"}),
        ("me-central-1", {"rerank_model": "vendor.model-v1:0", "writer_model": "vendor.model-v1:0"}),
        ("ca-central-1", {"inference_profile": "ca:ca-central-1,ca-west-1"}),
        ("us-east-1", {"inference_profile": "us"}),
        ("ap-northeast-3", {"inference_profile": "apac"}),
        ("us-east-1", {"inference_profile": "none"}),
        ("ap-southeast-2", {"inference_profile": "none"}),
        (
            "eu-west-1",
            {"inference_profile": "global", "rerank_model": "amazon.nova-2-lite-v1:0", "writer_model": "none"},
        ),
    ],
    ids=str,
)
def test_a_region_takes_models_it_can_invoke(region: str, given: dict[str, object]):
    check_region(parse(given), region)


def test_a_region_refuses_what_it_has_not():
    """Whatever the models are."""
    silent = {"rerank_model": "none", "writer_model": "none"}
    with pytest.raises(ContextInvalid, match="no SnapStart"):
        check_region(parse(silent), "us-gov-west-1")
    check_region(parse(silent), "eu-south-1")


NOT_OF_THE_CONTEXT = {"key", "model_refused", "number_of_replicas", "query_id", "request_id"}
"""Names in the operators' pages that are spelled like keys: of a log, of a setting of an index, of a record."""


@pytest.mark.parametrize("page", ["runbook.md", "aws.md"])
def test_operators_are_told_to_turn_only_keys_that_exist(page: str):
    """A key is spelled with an underscore, as in `storage_gb`, or with its value, as in `auth=jwt`."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r'CONTEXT="([^"]+)"', text)
    named = {
        found[1] for part in code for word in part.split() if (found := re.fullmatch(r"([a-z]+(?:_[a-z]+)*)=\S+", word))
    }
    named |= {part for part in code if re.fullmatch(r"[a-z]+(_[a-z]+)+", part)}
    assert {"storage_gb", "auth"} <= named
    assert named - NAMES <= NOT_OF_THE_CONTEXT
