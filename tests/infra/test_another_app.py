"""The constructs in an app of somebody else, with a context of its own and without the console or alarms."""

import json
from pathlib import Path

import pytest

from tests.infra.synth import CONTEXTS, deployment

pytestmark = pytest.mark.server


def another_app(folder: Path) -> dict[str, dict]:
    """The resources of a stack that takes the parts it wants."""
    import infra  # noqa: F401 - finds Node before the CDK is imported

    aws_cdk = pytest.importorskip("aws_cdk")
    from infra.constructs.consumers import EnrichmentFunction
    from infra.constructs.discovery_api import DiscoveryApi, FeedbackFunction
    from infra.constructs.event_path import EventPath
    from infra.constructs.function import Foundation
    from infra.constructs.model_access import ModelAccess
    from infra.constructs.search_domain import SearchDomain
    from infra.constructs.tables import MatsTables
    from infra.context import Context
    from infra.layers import core_layer, vendor_layer

    app = aws_cdk.App(context={"aws:cdk:bundling-stacks": []}, outdir=str(folder))
    stack = aws_cdk.Stack(app, "Another")
    chosen = Context(name="finder", rerank_model="none", throttle_rate=5)
    on = Foundation(
        context=chosen,
        models=ModelAccess(stack, "Models", context=chosen),
        tables=MatsTables(stack, "Tables", context=chosen),
        domain=SearchDomain(stack, "Index", context=chosen, network=None),
        network=None,
        core=core_layer(stack),
        packages=[vendor_layer(stack)],
    )
    EnrichmentFunction(stack, "Offline", on=on, path=EventPath(stack, "Path", on=on))
    DiscoveryApi(stack, "Online", on=on, feedback=FeedbackFunction(stack, "Reports", on=on))
    app.synth()
    return json.loads((folder / "Another.template.json").read_text())["Resources"]


def test_parts_of_the_stacks_are_used_without_the_rest(tmp_path: Path):
    made = another_app(tmp_path).values()
    kinds = {each["Type"] for each in made}
    assert {"AWS::OpenSearchService::Domain", "AWS::ApiGateway::RestApi", "AWS::DynamoDB::Table"} <= kinds
    assert not kinds & {"AWS::CloudWatch::Alarm", "AWS::StepFunctions::StateMachine"}
    tables = {each["Properties"]["TableName"] for each in made if each["Type"] == "AWS::DynamoDB::Table"}
    assert {"finder-registry", "finder-profiles"} <= tables


@pytest.mark.parametrize(("context", "count"), [("trial", 2), ("console", 4)])  # a console: JWT, and the CDK's own
def test_there_is_one_layer_of_each_content(context: str, count: int):
    layers = [json.dumps(each["Content"]) for each in deployment(**CONTEXTS[context]).all("AWS::Lambda::LayerVersion")]
    assert len(layers) == len(set(layers)) == count
