"""The commands of operators against what their policy allows."""

from pathlib import Path

import pytest

from mats.adapters.opensearch import generations
from tests.aws import iam
from tests.aws.recorder import Account, Recorder
from tests.command import Mats
from tests.infra.synth import deployment
from tests.infra.test_stacks import people
from tests.path.world import World, item

pytestmark = pytest.mark.server


def operators() -> list[iam.Statement]:
    return people(deployment(), "Operators")


def test_repair_and_reindex_are_allowed(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(generations.time, "sleep", lambda _: None)
    for name in ("refund_payment", "send_invoice"):
        world.put(item(name, "Does what its name says."))
    world.settle()
    enrichment = world.deployment.one("AWS::Lambda::Function", "Enrichment")
    with Recorder(
        dynamodb=world.servers.dynamodb,
        opensearch=world.servers.opensearch,
        bedrock=world.bedrock.url,
        account=Account.of(world.deployment),
    ) as recorder:
        environment = {
            **enrichment["Environment"]["Variables"],
            **recorder.environment(),
            "MATS_INDEX_ENDPOINT": recorder.url("opensearch"),
            "AWS_REGION": world.deployment.region,
        }
        mats = Mats(tmp_path / "home", encoder=environment["MATS_ENCODER"])
        for command in ("reconcile", "reindex", "reconcile"):
            mats(command, **environment).done()
        for words in (
            ["teach", "money back", "com.acme/refund_payment"],
            ["teach", "--list"],
            ["teach", "--forget", "money back"],
        ):
            mats(*words, **environment).done()
        assert recorder.refused(operators()) == []
        asked = {(call.method, call.path) for call in recorder.calls if call.service == "opensearch"}
    assert {("POST", "/_aliases"), ("PUT", "/capabilities-2")} <= asked
    assert {entry["id"] for entry in world.indexed()} == {"com.acme/refund_payment", "com.acme/send_invoice"}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("Get", "_cluster/health", True),
        ("Get", "_cat/indices", True),
        ("Delete", "capabilities-1", True),
        ("Put", "capabilities-1/_settings", True),
        ("Delete", "memory-1024", True),
        ("Put", "memory-1024/_settings", True),
        ("Post", "memory-1024-write/_bulk", False),
        ("Put", "_cluster/settings", False),
        ("Put", "_template/capabilities", False),
        ("Put", "_scripts/x", False),
        ("Post", "_reindex", False),
        ("Post", "_snapshot/cs-automated/x/_restore", False),
        ("Delete", "_snapshot/cs-automated/x", False),
        ("Delete", ".kibana_1", False),
        ("Delete", "_all", False),
        ("Delete", "*", False),
    ],
)
def test_operators_mend_our_indices_and_leave_the_cluster_alone(method: str, path: str, expected: bool):
    domain = Account.of(deployment()).domain
    assert iam.allowed(operators(), f"es:ESHttp{method}", f"{domain}/{path}") is expected
