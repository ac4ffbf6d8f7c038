"""The constructs in an app of somebody else, without the keys of ours, and without alarms or maintenance."""

import json
from pathlib import Path

import pytest

from tests.aws.deployment import Deployment
from tests.infra.synth import CONTEXTS, deployment, templates

pytestmark = pytest.mark.server


def another_app(folder: Path) -> None:
    """A stack of thirty lines that takes the parts it wants."""
    from aws_cdk import App, Stack

    from infra.constructs.consumers import EnrichmentFunction
    from infra.constructs.discovery_api import DiscoveryApi, DiscoveryProps, FeedbackFunction
    from infra.constructs.event_path import EventPath
    from infra.constructs.function import Foundation
    from infra.constructs.model_access import ModelAccess
    from infra.constructs.search_domain import SearchDomain
    from infra.constructs.shared import Shared
    from infra.constructs.tables import MatsTables
    from infra.inference_profiles import Models
    from infra.layers import core_layer, wheels_layer
    from infra.sizes import Nodes
    from infra.vendor import VENDOR

    app = App(context={"aws:cdk:bundling-stacks": []}, outdir=str(folder))
    stack, shared = Stack(app, "Another"), Shared(name="finder", log_days=7)
    models = Models(reranker="none", writer="amazon.nova-lite-v1:0", encoder="amazon.titan-embed-text-v2:0")
    on = Foundation(
        shared=shared,
        models=ModelAccess(stack, "Models", models=models),
        tables=MatsTables(stack, "Tables", shared=shared),
        domain=SearchDomain(stack, "Index", shared=shared, nodes=Nodes(nodes=2, node="r7g.large.search", gb_each=20)),
        core=core_layer(stack),
        packages=[wheels_layer(stack, VENDOR)],
    )
    EnrichmentFunction(stack, "Offline", on=on, path=EventPath(stack, "Path", on=on), at_once=5)
    feedback = FeedbackFunction(stack, "Reports", on=on)
    DiscoveryApi(stack, "Online", on=on, feedback=feedback, props=DiscoveryProps(throttle_rate=5))
    app.synth()


def test_parts_of_the_stacks_are_used_without_the_rest(tmp_path: Path):
    templates()  # or there is no CDK here
    another_app(tmp_path)
    made = Deployment(json.loads((tmp_path / "Another.template.json").read_text()), values={})
    for kind in ("CloudWatch::Alarm", "StepFunctions::StateMachine", "KMS::Key"):
        assert made.all(f"AWS::{kind}") == []
    assert {"finder-registry", "finder-profiles"} < {each["TableName"] for each in made.all("AWS::DynamoDB::Table")}
    assert made.one("AWS::OpenSearchService::Domain")["ClusterConfig"]["InstanceCount"] == 2
    assert made.one("AWS::ApiGateway::Stage")["MethodSettings"][0]["ThrottlingRateLimit"] == 5
    assert {each["RetentionInDays"] for each in made.all("AWS::Logs::LogGroup")} == {7}
    (mapping,) = (each for each in made.all("AWS::Lambda::EventSourceMapping") if ":sqs:" in each["EventSourceArn"])
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 5}


@pytest.mark.parametrize(("context", "count"), [("trial", 2), ("jwt, mail", 3)])
def test_there_is_one_layer_of_each_content(context: str, count: int):
    layers = [json.dumps(each["Content"]) for each in deployment(**CONTEXTS[context]).all("AWS::Lambda::LayerVersion")]
    assert len(layers) == len(set(layers)) == count
