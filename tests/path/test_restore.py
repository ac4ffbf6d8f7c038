"""Restore of a table, and a second deployment: the runbook's steps, walked with `mats copy-table`."""

import json
from pathlib import Path

import pytest

from mats.adapters.dynamodb.tables import from_row
from tests.aws.deployment import ACCOUNT, REGION
from tests.command import Mats
from tests.path.test_feedback import ANN, BOB, receipt
from tests.path.world import Make, World, item

pytestmark = pytest.mark.server
TABLES = ("Registry", "Trust", "Profiles", "Callers", "Synonyms", "Outcomes", "Tallies")


class Operator:
    """Runs `mats copy-table` with the administrator's rights."""

    def __init__(self, world: World, folder: Path) -> None:
        self._mats = Mats(folder / "home")
        self._environment = {
            "AWS_ENDPOINT_URL_DYNAMODB": world.servers.dynamodb, "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "example", "AWS_SECRET_ACCESS_KEY": "example",
        }  # fmt: skip

    def copy(self, source: str, target: str, *options: str, code: int = 0) -> dict[str, int] | str:
        ran = self._mats("copy-table", source, target, *options, "--json", **self._environment)
        assert ran.code == code, ran.err
        return ran.err if code else json.loads(ran.out)


def restored(world: World, table: str) -> str:
    """The table as it is now, as DynamoDB restores it: under another name, without a stream."""
    name = world.table(table)
    described = world.dynamodb.describe_table(TableName=name)["Table"]
    new = f"{name}-restored"
    world.dynamodb.create_table(
        TableName=new, BillingMode="PAY_PER_REQUEST", KeySchema=described["KeySchema"],
        AttributeDefinitions=[
            each for each in described["AttributeDefinitions"]
            if each["AttributeName"] in {key["AttributeName"] for key in described["KeySchema"]}
        ],
    )  # fmt: skip
    for row in world.dynamodb.scan(TableName=name)["Items"]:
        world.dynamodb.put_item(TableName=new, Item=row)
    return new


def test_rows_of_a_restored_table_come_back_and_are_found_and_later_writes_stay(world: World, tmp_path: Path) -> None:
    ids = [world.put(item(f"tool-{n}", f"Handles item{n} well.")) for n in range(5)]
    world.settle()
    before, profiles = restored(world, "Registry"), restored(world, "Profiles")
    try:
        world.put(item("tool-0", "Handles item0 better."))
        for id in ids[1:4]:
            world.remove(id)
        world.settle()
        assert {entry["id"] for entry in world.indexed() if entry["findable"]} == {ids[0], ids[4]}

        operator, live = Operator(world, tmp_path), world.table("Registry")
        assert operator.copy(before, live) == {"written": 3, "kept": 2}
        assert operator.copy(before, f"{REGION}:{live}") == {"written": 0, "kept": 5}
        world.settle()
        world.night()
        world.settle()
        assert {entry["id"] for entry in world.indexed() if entry["findable"]} == set(ids)
        assert (world.profile(ids[0]) or {})["source"]["description"] == "Handles item0 better."

        assert operator.copy(before, live, "--replace") == {"written": 5, "kept": 0}
        assert operator.copy(profiles, world.table("Profiles"), "--replace")["written"] >= 5
        world.settle()
        world.night()
        world.settle()
        assert (world.profile(ids[0]) or {})["source"]["description"] == "Handles item0 well."
        assert {entry["id"]: entry["rev"] for entry in world.indexed()} == {
            id: profile["rev"] for id, profile in world.profiles().items()
        }
    finally:
        for table in (before, profiles):
            world.dynamodb.delete_table(TableName=table)


def test_a_second_deployment_goes_on_with_what_the_first_one_knew(made: Make, tmp_path: Path) -> None:
    first = made()
    ids = [first.put(item(f"tool-{n}", f"Handles item{n} well.")) for n in range(4)]
    first.put(item("secret", "Handles item9 well.", visible_to=["finance"]))
    first.trust(ids[0], 90)
    first.admit(f"arn:aws:iam::{ACCOUNT}:role/Ann", "finance")
    first.settle()
    for caller in (ANN, BOB):
        answer = first.discover("take care of it", caller=caller).content
        receipt(first, answer["query_id"])
        shown = answer["results"][0]["id"]
        body = {"query_id": answer["query_id"], "outcomes": [{"id": shown, "event": "succeeded"}]}
        assert first.ask("POST", "/feedback", body, caller=caller).status == 202
    first.settle()
    known = {memory["query_id"]: memory["used"] for memory in first.memory()}
    assert len(known) == 2
    operator = Operator(first, tmp_path)
    files = {table: str(tmp_path / f"{table}.jsonl") for table in TABLES}
    exported = {table: operator.copy(first.table(table), file)["written"] for table, file in files.items()}
    asked = [first.discover(query, caller=ANN).ids for query in ("item3", "item9")]

    second = made()  # its tables and indices are new
    assert second.profiles() == {}
    for table, file in files.items():
        assert operator.copy(file, second.table(table))["written"] == exported[table]
    second.deployed("CREATE_COMPLETE")
    second.settle()
    assert [second.discover(query, caller=ANN).ids for query in ("item3", "item9")] == asked
    assert "com.acme/secret" not in second.discover("item9", caller=BOB).ids
    assert (second.profile(ids[0]) or {})["trust"] == 90
    assert {memory["query_id"]: memory["used"] for memory in second.memory()} == known
    assert not [call for call in second.calls if call.service == "bedrock" and "nova-lite" in call.path]  # the writer


@pytest.mark.parametrize(
    ("source", "target", "problem"),
    [
        ("missing.jsonl", "any", "cannot be read"),
        ("broken.jsonl", "any", "line 2 of"),
        ("no-such-table", "out.jsonl", "no-such-table"),
        ("good.jsonl", "no-such-table", "no-such-table"),
        ("good.jsonl", "no-such-folder/out.jsonl", "cannot be written"),
    ],
)
def test_what_cannot_be_copied_says_so(world: World, tmp_path: Path, source: str, target: str, problem: str) -> None:
    (tmp_path / "good.jsonl").write_text('{"Item": {"namespace": {"S": "a"}, "name": {"S": "b"}}}\n')
    (tmp_path / "broken.jsonl").write_text('{"Item": {"namespace": {"S": "a"}, "name": {"S": "b"}}}\n{"Item": [3]}\n')
    places = [str(tmp_path / each) if each.endswith(".jsonl") else each for each in (source, target)]
    places = [world.table("Registry") if each == "any" else each for each in places]
    code = 3 if "table" in problem else 1
    assert problem in str(Operator(world, tmp_path).copy(*places, code=code))


def test_a_file_holds_every_type_of_value(world: World, tmp_path: Path) -> None:
    row = {
        "namespace": {"S": "com.acme"}, "name": {"S": "all"}, "kind": {"S": "tool"}, "b": {"B": b"\x00\xff"},
        "n": {"N": "1.50"}, "t": {"BOOL": True}, "z": {"NULL": True}, "bs": {"BS": [b"\x01", b"\x02"]},
        "ss": {"SS": ["x", "ß"]}, "m": {"M": {"l": {"L": [{"B": b"\x03"}, {"S": "y"}]}}},
    }  # fmt: skip
    world.dynamodb.put_item(TableName=world.table("Trust"), Item=row)
    operator, file = Operator(world, tmp_path), tmp_path / "trust.jsonl"
    operator.copy(world.table("Trust"), str(file))
    world.dynamodb.delete_item(TableName=world.table("Trust"), Key={name: row[name] for name in ("namespace", "name")})
    assert operator.copy(str(file), world.table("Trust")) == {"written": 1, "kept": 0}
    (read,) = world.dynamodb.scan(TableName=world.table("Trust"))["Items"]
    assert from_row(read) == from_row(row)
