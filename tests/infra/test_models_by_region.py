"""Which models a deployment calls in a region, and that functions and operators may invoke these and nothing else."""

import json
from collections.abc import Iterator

import pytest

from infra.context import ContextInvalid, check_region, parse
from mats.settings import Settings
from tests.aws import iam
from tests.aws.deployment import Deployment, Unresolvable, texts
from tests.infra.synth import deployment
from tests.infra.test_stacks import allows, function, people, run_app

pytestmark = pytest.mark.server

RERANKER, WRITER = "amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0"
TITAN = "amazon.titan-embed-text-v2:0"
US = {"us-east-1", "us-east-2", "us-west-2"}
EU = {"eu-central-1", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-3"}
PROFILE = "bedrock:InferenceProfileArn"  # A condition key
APAC = {"ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1", "ap-southeast-2"}
EXPECTED: dict[str, tuple[str, set[str]]] = {
    "us-east-1": ("", set()),
    "eu-west-2": ("", set()),
    "us-west-2": ("us.", US),
    "eu-central-1": ("eu.", EU),
    "ap-northeast-1": ("apac.", APAC),
    "ap-south-1": ("apac.", APAC),
}
EVERYWHERE = US | EU | APAC | set(EXPECTED)
LONGEST_POLICY = 6_144  # Characters that IAM allows a managed policy, white space not counted


def arn(region: str, model: str) -> str:
    return f"arn:aws:bedrock:{region}::foundation-model/{model}"


def profile(deployed: Deployment, id: str) -> str:
    return f"arn:aws:bedrock:{deployed.region}:{deployed.account}:inference-profile/{id}"


def invoked(deployed: Deployment, allowed: list[iam.Statement], *, through: str = "") -> Iterator[tuple[str, str]]:
    """(region, model) of every model that may be invoked directly, or through a profile."""
    for region in EVERYWHERE:
        for model in (RERANKER, WRITER, TITAN, "amazon.nova-pro-v1:0"):
            context = {PROFILE: through}
            if iam.allowed(allowed, "bedrock:InvokeModel", arn(region, model), context):
                yield region, model


@pytest.mark.parametrize("region", EXPECTED)
def test_functions_pass_the_ids_that_their_region_takes(region: str):
    prefix, _ = EXPECTED[region]
    deployed = deployment(region=region)
    for name in ("discovery", "enrichment"):
        settings = Settings.from_env(function(deployed, name)["Environment"]["Variables"])
        assert (settings.rerank_model, settings.writer_model) == (prefix + RERANKER, prefix + WRITER)
        assert settings.encoder == TITAN


@pytest.mark.parametrize("region", EXPECTED)
@pytest.mark.parametrize(("who", "model"), [("discovery", RERANKER), ("enrichment", WRITER), ("operators", WRITER)])
def test_each_may_invoke_its_models_where_the_region_sends_them_and_nowhere_else(region: str, who: str, model: str):
    prefix, destinations = EXPECTED[region]
    deployed = deployment(region=region)
    allowed = people(deployed, "Operators") if who == "operators" else allows(deployed, who)
    allowed = [one for one in allowed if "bedrock:InvokeModel" in texts(one["Action"])]
    directly = {(region, TITAN)} if prefix else {(region, TITAN), (region, model)}
    assert set(invoked(deployed, allowed)) == directly
    if prefix:
        through = profile(deployed, prefix + model)
        assert iam.allowed(allowed, "bedrock:InvokeModel", through)
        assert set(invoked(deployed, allowed, through=through)) == directly | {(each, model) for each in destinations}
    other = profile(deployed, "us.anthropic.claude-haiku-4-5-20251001-v1:0")
    assert not iam.allowed(allowed, "bedrock:InvokeModel", other)
    assert set(invoked(deployed, allowed, through=other)) == directly


NOVA_2 = {
    "us-east-1": ("us.", US),
    "eu-west-1": ("eu.", EU),
    "ap-northeast-1": ("jp.", {"ap-northeast-1", "ap-northeast-3"}),
}


@pytest.mark.parametrize("region", NOVA_2)
def test_nova_2_is_invoked_through_its_profile_beside_nova(region: str):
    prefix, destinations = NOVA_2[region]
    model = "amazon.nova-2-lite-v1:0"
    deployed = deployment(region=region, writer_model=model)
    settings = Settings.from_env(function(deployed, "enrichment")["Environment"]["Variables"])
    assert (settings.rerank_model, settings.writer_model) == (
        {"eu-west-1": "eu.", "ap-northeast-1": "apac."}.get(region, "") + RERANKER,
        prefix + model,
    )
    allowed, through = allows(deployed, "enrichment"), profile(deployed, prefix + model)
    assert iam.allowed(allowed, "bedrock:InvokeModel", through)
    reached = {
        each for each in EVERYWHERE
        if iam.allowed(allowed, "bedrock:InvokeModel", arn(each, model), {PROFILE: through})
    }  # fmt: skip
    assert reached == destinations
    assert not iam.allowed(allowed, "bedrock:InvokeModel", arn(region, model), {PROFILE: ""})


def test_a_region_that_nova_2_has_no_known_profile_in_is_refused():
    with pytest.raises(ContextInvalid, match="ap-south-1 cannot invoke amazon"):
        check_region(parse({"writer_model": "amazon.nova-2-lite-v1:0"}), "ap-south-1")
    both = {"writer_model": "amazon.nova-2-lite-v1:0", "rerank_model": "amazon.nova-2-lite-v1:0"}
    check_region(parse({**both, "inference_profile": "global"}), "ap-south-1")


def test_cloudformation_refuses_a_region_without_models():
    deployed = deployment(region="me-central-1")
    with pytest.raises(Unresolvable, match="me-central-1"):
        dict(function(deployed, "discovery")["Environment"])


def test_a_named_profile_goes_before_the_region():
    deployed = deployment(region="ca-central-1", inference_profile="ca:ca-central-1,ca-west-1", rerank_model="none")
    settings = Settings.from_env(function(deployed, "enrichment")["Environment"]["Variables"])
    assert settings.writer_model == f"ca.{WRITER}"
    allowed = allows(deployed, "enrichment")
    context = {PROFILE: profile(deployed, f"ca.{WRITER}")}
    assert iam.allowed(allowed, "bedrock:InvokeModel", arn("ca-west-1", WRITER), context)
    assert not iam.allowed(allowed, "bedrock:InvokeModel", arn("ca-west-1", WRITER), {**context, PROFILE: "another"})


def test_none_invokes_the_models_of_the_region():
    deployed = deployment(region="ap-southeast-2", inference_profile="none")
    settings = Settings.from_env(function(deployed, "discovery")["Environment"]["Variables"])
    assert settings.rerank_model == RERANKER
    assert set(invoked(deployed, allows(deployed, "discovery"))) == {
        ("ap-southeast-2", RERANKER), ("ap-southeast-2", TITAN),
    }  # fmt: skip


def test_without_an_encoder_nobody_may_invoke_one():
    deployed = deployment(encoder_model="none")
    for name in ("discovery", "enrichment"):
        assert Settings.from_env(function(deployed, name)["Environment"]["Variables"]).encoder == "none"
        assert (deployed.region, TITAN) not in set(invoked(deployed, allows(deployed, name)))
    assert (deployed.region, TITAN) not in set(invoked(deployed, [
        one for one in people(deployed, "Operators") if "bedrock:InvokeModel" in texts(one["Action"])
    ]))  # fmt: skip


@pytest.mark.parametrize("region", EXPECTED)
def test_operators_fit_into_a_managed_policy(region: str):
    policies = deployment(region=region, name="mats-in-a-region").all("AWS::IAM::ManagedPolicy")
    found = {one.id: len(json.dumps(one["PolicyDocument"], separators=(",", ":"))) for one in policies}
    assert max(found.values()) <= LONGEST_POLICY


def test_app_py_refuses_a_region_without_models_when_it_knows_the_region(tmp_path):
    deployment()
    context = {"aws:cdk:bundling-stacks": []}
    known = {"CDK_DEFAULT_ACCOUNT": "123456789012", "CDK_DEFAULT_REGION": "me-central-1"}
    said = run_app(tmp_path, context, known)
    assert said.returncode == 1
    assert "me-central-1 cannot invoke" in said.stderr
