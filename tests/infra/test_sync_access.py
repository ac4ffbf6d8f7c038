"""`mats sync --table` in DynamoDB Local, as the policy of owners allows it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mats.adapters.dynamodb.registry import DynamoRegistry
from mats.adapters.dynamodb.tables import Tables
from mats.domain.capability.capability import Id
from tests.aws import iam
from tests.aws.calls import Call
from tests.aws.recorder import Recorder, Refuse
from tests.aws.tables import a_table, credentials
from tests.builders import a_registration
from tests.command import Mats
from tests.infra.synth import deployment

TAG = "${aws:PrincipalTag/mats-namespace, '~'}"


@pytest.fixture
def recorder(dynamodb_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    with Recorder(dynamodb=dynamodb_url) as recorder:
        credentials(monkeypatch, dynamodb=recorder.url("dynamodb"))
        yield recorder


@pytest.fixture
def table(recorder: Recorder) -> str:
    name = a_table(Tables())
    recorder.calls.clear()
    return name


@pytest.fixture
def mats(tmp_path: Path) -> Iterator[Mats]:
    mats = Mats(tmp_path / "home")
    yield mats
    mats.kill()


def write(file: Path, *versions: str) -> None:
    rows = [a_registration(name=f"t{n}", version=version).item() for n, version in enumerate(versions) if version]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def namespaces(call: Call) -> set[str]:
    """The partition keys that a call names."""
    asked: dict[str, Any] = json.loads(call.body)
    keys = [key for table in asked.get("RequestItems", {}).values() for key in table["Keys"]]
    keys += [asked[part] for part in ("Item", "Key") if part in asked]
    return {key["namespace"]["S"] for key in keys}


def assert_owners_may(calls: list[Call]) -> None:
    """Each call is allowed to an owner of com.acme.pay, on the items it names."""
    made = deployment()
    statements = made.one("AWS::IAM::ManagedPolicy", "PeopleOwners")["PolicyDocument"]["Statement"]
    owned = json.loads(json.dumps(statements).replace(TAG, "com.acme.pay"))
    registry = made.one("AWS::DynamoDB::Table", "Registry").arn
    for call in calls:
        names = namespaces(call)
        assert names, call
        for name in names:
            context = {"dynamodb:LeadingKeys": name, "aws:PrincipalTag/mats-namespace": "com.acme.pay"}
            assert iam.allowed(owned, f"dynamodb:{call.operation}", registry, context), call
    assert not iam.allowed(owned, "dynamodb:Scan", registry, {"dynamodb:LeadingKeys": "com.acme.pay",
                           "aws:PrincipalTag/mats-namespace": "com.acme.pay"})  # fmt: skip


def test_a_table_is_kept_in_step_within_the_rights_of_owners(
    mats: Mats, recorder: Recorder, table: str, tmp_path: Path
):
    file = tmp_path / "items.jsonl"
    write(file, *"111111111111")
    mats("source", "add", str(file), "--name", "items")
    first = mats("sync", "--table", table, "--json").done()
    assert first.json["sources"][0]["new"] == 12
    calls = len(recorder.calls)
    again = mats("sync", "--table", table, "--json").json["sources"][0]
    assert (again["unchanged"], again["new"] + again["changed"]) == (12, 0)
    assert {call.operation for call in recorder.calls[calls:]} == {"BatchGetItem"}
    registry = DynamoRegistry(Tables(), table)
    registry.put([a_registration(name="t1", version="by hand")])
    write(file, "", "", *"1111111112")
    pruned = mats("sync", "--table", table, "--prune", "--json").json["sources"][0]
    assert (pruned["changed"], pruned["removed"]) == (1, ["com.acme.pay/t0"])
    assert [one["id"] for one in pruned["left"]] == ["com.acme.pay/t1"]
    kept = registry.get([Id("com.acme.pay/t0"), Id("com.acme.pay/t1")])
    assert {id: item["version"] for id, item in kept.items()} == {"com.acme.pay/t1": "by hand"}
    assert mats("source", "list", "--json").json[0]["entries"] == 0
    assert mats("source", "list", "--table", table, "--json").json[0]["entries"] == 10
    assert_owners_may(recorder.calls)


def test_throttling_is_waited_for(mats: Mats, recorder: Recorder, table: str, tmp_path: Path):
    file, refused = tmp_path / "items.jsonl", [0]
    write(file, "1", "1")

    def throttle(call: Call) -> Refuse | None:
        if call.operation != "PutItem" or refused[0] >= 3:
            return None
        refused[0] += 1
        return Refuse(400, "ProvisionedThroughputExceededException")

    mats("source", "add", str(file), "--name", "items")
    recorder.play = throttle
    assert mats("sync", "--table", table, "--json").json["sources"][0]["new"] == 2
    assert refused == [3]


def test_a_table_that_refuses_is_one_line_and_the_next_sync_completes(
    mats: Mats, recorder: Recorder, table: str, tmp_path: Path
):
    file = tmp_path / "items.jsonl"
    write(file, "1", "1")
    mats("source", "add", str(file), "--name", "items")
    recorder.play = lambda call: Refuse(400, "AccessDeniedException") if call.operation == "PutItem" else None
    ran = mats("sync", "--table", table)
    assert ran.code == 1
    assert "check the policies of the caller" in ran.out
    recorder.play = None
    done = mats("sync", "--table", table, "--json").json["sources"][0]
    assert (done["new"] + done["unchanged"], done["error"]) == (2, None)
