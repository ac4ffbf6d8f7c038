"""The keys of the context, and the errors of invalid values."""

import json
import re
from dataclasses import fields

import pytest

from infra import inference_profiles
from infra.context import Context, ContextInvalid, table
from infra.vendor import ROOT
from tests.infra.synth import CONSOLE, HOST, JWT, PRODUCTION, SIGN_IN, VPC, ZONES


def faults(**given: object) -> list[str]:
    with pytest.raises(ContextInvalid) as caught:
        Context.parse(given)
    return caught.value.faults


def test_nothing_has_to_be_chosen():
    assert Context.parse({}) == Context()


def test_the_defaults_of_cdk_json_are_the_defaults():
    assert Context.parse(json.loads((ROOT / "cdk.json").read_text())["context"]) == Context()


def test_a_command_line_says_everything_as_text():
    chosen = Context.parse({"waf": "true", "size": "production", "network": "vpc", "availability_zones": ZONES})
    assert chosen.waf
    assert chosen.production
    assert chosen.availability_zones == tuple(ZONES.split(","))


def test_a_file_may_say_it_as_json():
    chosen = Context.parse({"waf": True, "network": "vpc", "availability_zones": ["eu-west-1a"]})
    assert chosen == Context.parse({"waf": "true", **VPC})


def test_every_fault_is_named_at_once():
    found = faults(size="huge", network="mesh", waf="perhaps", auth="jwt", domain_name="x.example.com", nextwork="vpc")
    assert len(found) == 7
    for part in ("size", "network", "waf", "jwt_issuer", "jwt_audience", "certificate_arn", "nextwork"):
        assert any(part in fault for fault in found), part


def test_keys_of_the_cdk_are_passed_over():
    assert (
        Context.parse({"aws:cdk:bundling-stacks": [], "@aws-cdk/core:newStyle": True, "cli/telemetry": False})
        == Context()
    )


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"availability_zones": "eu-west-1a"}, "is for network=vpc"),
        ({"network": "vpc"}, "needs 1 availability_zones, not 0"),
        ({"network": "vpc", "size": "production", "availability_zones": "eu-west-1a"}, "needs 3"),
        ({"network": "vpc", "availability_zones": "eu-west-1"}, "is not a zone"),
        ({"network": "vpc", "size": "production", "availability_zones": "eu-west-1a,eu-west-1a,eu-west-1b"}, "twice"),
        ({**JWT, "jwt_issuer": "http://issuer.example.com"}, "https address"),
        ({"jwt_audience": "mats"}, "are for auth=jwt"),
        ({**HOST, "domain_name": "no host"}, "host name"),
        ({**HOST, "certificate_arn": "arn:aws:acm"}, "ARN of an ACM certificate"),
        ({"console": "true"}, "console=true needs auth=jwt"),
        ({**JWT, "console_client_id": "a"}, "console_client_id is for console=true"),
        ({**SIGN_IN, "console_client_id": "a b"}, "id of a client"),
        ({**CONSOLE, "console_token_host": "sign.example.com"}, "console_token_host is for console_client_id"),
        ({**SIGN_IN, "console_token_host": "https://sign.example.com"}, "must be a host name"),
        ({**SIGN_IN, "jwt_issuer": "https://issuer.example.com;x"}, "with a host name"),
        ({**SIGN_IN, "jwt_issuer": "https://who@issuer.example.com"}, "with a host name"),
        ({"alarm_email": "nobody"}, "one address"),
        ({"rerank_model": "us.amazon.nova-micro-v1:0"}, "inference_profile"),
        ({"writer_model": "Nova"}, "writer_model"),
        ({"inference_profile": "mars"}, "mars"),
        ({"inference_profile": "global"}, "nova-micro-v1:0 has no global profile"),
        ({"inference_profile": "global", "rerank_model": "none"}, "nova-lite-v1:0 has no global profile"),
        ({"encoder_model": "cohere.embed-v4:0"}, "encoder_model must be amazon.titan-embed-text-v2:0 or none"),
        ({"inference_profile": "us:nowhere"}, "nowhere"),
        ({"size": 3}, "size must be a text"),
        ({"name": "Mats"}, "name must be"),
        ({"caller_limit": 500}, "needs waf=true"),
        ({"caller_limit": 5, "waf": "true"}, "from 10"),
        ({"caller_accounts": "1234"}, "number of an account"),
        ({**JWT, "caller_organization": "o-a1b2c3d4e5"}, "are for auth=iam"),
        ({"caller_organization": "acme"}, "id of an organization"),
        ({"api": "private"}, "needs network=vpc"),
        ({**VPC, "vpc_id": "vpc-1a", "subnet_ids": "subnet-1a", "api": "private"}, "needs api_endpoint_id"),
        ({**VPC, **HOST, "api": "private"}, "domain_name needs api=public"),
        ({"api_endpoint_id": "vpce-1a"}, "is for api=private"),
        ({"rollout": "boldly"}, "rollout must be"),
        ({"rejection_email": "nobody"}, "one address"),
        ({"spend_per_hour": -1}, "from 1 to"),
        ({"switch_models": "eu.amazon.nova-pro-v1:0"}, "without geography"),
        ({"name": "a" * 17}, "name must be"),
        ({"instance_type": "r7g.large"}, "such as r7g.large.search"),
        ({"instance_count": 2}, "1 or a multiple of 3"),
        ({**PRODUCTION, "instance_count": 1}, "needs 3 or more"),
        ({"storage_gb": 5}, "from 10 to 16000"),
        ({"enrichment_concurrency": 1}, "from 2 to 1000"),
        ({"throttle_rate": -1}, "from 1 to 10000"),
        ({"log_retention_days": 91}, "must be one of"),
        ({"log_queries": "never"}, "text or hash"),
        ({"weights": "mine"}, "paper or with-retrieval"),
        ({"trust_rule": "blind"}, "proportional or additive"),
        ({"trust_prior": "101"}, "from 0 to 100, or none"),
        ({"kms_key_arn": "alias/mats"}, "ARN of a KMS key"),
        ({"alarm_topic_arn": "on-call"}, "ARN of an SNS topic"),
        ({"vpc_id": "vpc-1a"}, "is for network=vpc"),
        ({**VPC, "vpc_id": "mine", "subnet_ids": "subnet-1a"}, "id of a VPC"),
        ({**VPC, "vpc_id": "vpc-1a"}, "a subnet in subnet_ids for each"),
        ({**VPC, "subnet_ids": "subnet-1a"}, "is for vpc_id"),
        ({**VPC, "vpc_id": "vpc-1a", "subnet_ids": "net-1a"}, "id of a subnet"),
        ({**VPC, "instance_count": 3}, "needs 3 availability_zones"),
        ({**JWT, "jwt_claim": ""}, "must name a claim"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, object], part: str):
    assert any(re.search(part, fault) for fault in faults(**given))


def test_a_console_needs_no_client_and_a_client_knows_where_its_issuer_answers():
    assert Context.parse(CONSOLE).console_client_id == ""
    issuer = {"jwt_issuer": "https://Issuer.example.com:8443/realms/mats"}
    assert Context.parse({**SIGN_IN, **issuer}).issuer_origin == "https://issuer.example.com:8443"


def test_the_documentation_shows_the_keys_as_they_are():
    assert table() in (ROOT / "docs" / "aws.md").read_text()
    assert all(f"`{key.name}`" in table() for key in fields(Context))


HERE = {"partition": "aws", "region": "eu-west-1", "account": "123456789012"}
NOVA = "amazon.nova-micro-v1:0"


def test_a_model_is_allowed_by_its_one_arn():
    assert inference_profiles.arns(NOVA, None, **HERE) == ([f"arn:aws:bedrock:eu-west-1::foundation-model/{NOVA}"], [])


def test_no_model_is_allowed_by_none():
    assert inference_profiles.arns("none", None, **HERE) == ([], [])
    assert inference_profiles.invoked_as("none", inference_profiles.InferenceProfile.parse("eu")) == "none"


def test_a_profile_needs_its_own_arn_and_those_of_every_region_it_may_end_in():
    profile = inference_profiles.InferenceProfile.parse("us:us-east-1,us-west-2")
    directly, through = inference_profiles.arns(NOVA, profile, **HERE)
    assert directly == [f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/us.{NOVA}"]
    assert through == [f"arn:aws:bedrock:{region}::foundation-model/{NOVA}" for region in ("us-east-1", "us-west-2")]
    assert inference_profiles.invoked_as(NOVA, profile) == f"us.{NOVA}"


def test_a_global_profile_ends_here_or_in_no_named_region():
    _, through = inference_profiles.arns(NOVA, inference_profiles.InferenceProfile.parse("global"), **HERE)
    assert through == [f"arn:aws:bedrock:{region}::foundation-model/{NOVA}" for region in ("eu-west-1", "")]


@pytest.mark.parametrize(
    ("region", "given", "part"),
    [
        ("me-central-1", {}, "me-central-1 cannot invoke amazon.nova-micro-v1:0 and amazon.nova-lite-v1:0"),
        ("ca-central-1", {"rerank_model": "none"}, "ca-central-1 cannot invoke amazon.nova-lite-v1:0"),
        ("us-west-2", {"inference_profile": "none"}, "us-west-2 takes .* through an inference profile only"),
        ("eu-west-1", {"inference_profile": "us"}, "us cannot be called from eu-west-1"),
        ("us-gov-west-1", {"inference_profile": "us"}, "us cannot be called from us-gov-west-1"),
        ("us-east-1", {"inference_profile": "apac"}, "apac cannot be called from us-east-1"),
    ],
)
def test_a_region_refuses_models_it_cannot_invoke(region: str, given: dict[str, object], part: str):
    with pytest.raises(ContextInvalid) as caught:
        Context.parse(given).check_region(region)
    assert re.search(part, str(caught.value))
    assert "inference_profile" in str(caught.value)


@pytest.mark.parametrize(
    ("region", "given"),
    [
        *((region, {}) for region in inference_profiles.regions()),
        ("me-central-1", {"rerank_model": "none", "writer_model": "none"}),
        ("me-central-1", {"rerank_model": "vendor.model-v1:0", "writer_model": "vendor.model-v1:0"}),
        ("ca-central-1", {"inference_profile": "ca:ca-central-1,ca-west-1"}),
        ("us-east-1", {"inference_profile": "us"}),
        ("ap-northeast-3", {"inference_profile": "apac"}),
        ("us-east-1", {"inference_profile": "none"}),
        ("ap-southeast-2", {"inference_profile": "none"}),
        (
            "eu-west-1",
            {
                "inference_profile": "global",
                "rerank_model": "amazon.nova-2-lite-v1:0",
                "writer_model": "none",
            },
        ),
    ],
)
def test_a_region_takes_models_it_can_invoke(region: str, given: dict[str, object]):
    Context.parse(given).check_region(region)


NOT_OF_THE_CONTEXT = {"key", "model_refused", "number_of_replicas", "request_id"}
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
    assert named - {key.name for key in fields(Context)} <= NOT_OF_THE_CONTEXT
