"""`mats preview` over the sample registry."""

import json

import pytest

from tests.conftest import ROOT
from tests.integration.conftest import Mats

NOVA = "com.amazon.bedrock/amazon.nova-lite-v1:0"


@pytest.fixture(scope="module")
def sample(tmp_path_factory, encoder) -> Mats:
    mats = Mats(tmp_path_factory.mktemp("sample") / "home", encoder="all-MiniLM-L6-v2")
    assert mats("import", str(ROOT / "examples/registry.jsonl")).code == 0
    return mats


def everything(mats: Mats) -> list:
    return [mats("show", NOVA, "--json").json, mats("stats", "--json").json]


def test_a_preview_tells_all_it_should_and_changes_nothing(sample: Mats):
    before = everything(sample)
    item = {
        "namespace": "com.mine", "name": "shrink_receipts", "kind": "tool",
        "description": "Reads photos of receipts and writes the totals into a table.",
        "examples": ["add up these receipts"],
    }  # fmt: skip
    ran = sample("preview", "-", "--json", stdin=json.dumps(item).encode()).done()
    told = ran.json
    assert (told["id"], told["placed"]) == ("com.mine/shrink_receipts", "new")
    assert told["profile"]["positive_examples"] == ["add up these receipts"]
    (query,) = told["queries"]
    assert (query["origin"], query["place"], query["before"]) == ("its example, left out of its text", 1, [])
    assert told["without"] == []
    assert everything(sample) == before


def test_a_copy_comes_behind_its_original_for_this_reason(sample: Mats, tmp_path):
    kept = sample("show", NOVA, "--json").json["registration"]
    (tmp_path / "copy.json").write_text(json.dumps({**kept, "namespace": "org.copy"}))
    query = sample("preview", str(tmp_path / "copy.json"), "--json").json["queries"][0]
    assert query["before"][0]["id"] == NOVA
    shown = sample("preview", str(tmp_path / "copy.json"))
    assert f"1. {NOVA}: " in shown.out


def test_what_is_registered_is_previewed_by_its_id(sample: Mats):
    told = sample("preview", NOVA, "--json").json
    assert told["placed"] == "unchanged"
    assert all(one["id"] != NOVA for query in told["queries"] for one in query["before"])


def test_of_a_file_with_several_one_is_chosen_by_name(sample: Mats):
    file = str(ROOT / "examples/formats/openapi.yaml")
    sample("preview", file).fails(2, "lendBook")
    assert sample("preview", file, "--name", "lendBook", "--json").json["kind"] == "tool"


def test_missing_or_invalid_item_is_reported(sample: Mats):
    assert sample("preview", "no/such").code == 1
    for name in ("nothing.json", "no/such.yaml"):
        sample("preview", name).fails(1, f"{name}: no such file")
    wrong = sample("preview", "-", stdin=b'{"kind": "robot", "namespace": "A B"}').fails(1)
    assert {"name", "kind", "namespace"} <= set(wrong.err.replace(":", " ").split())
    paths = {"/a": {"get": {"operationId": "a"}}, "/b": {"get": {"operationId": "b"}}}
    unowned = json.dumps({"openapi": "3.1.0", "info": {"title": "X", "version": "1"}, "paths": paths}).encode()
    assert sample("preview", "-", stdin=unowned).fails(1, "(and 1 more of this file)").err.count("--namespace") == 1


def test_what_would_be_refused_or_suspected_is_exit_code_1(sample: Mats):
    item = {**sample("show", NOVA, "--json").json["registration"], "kind": "tool"}
    taken = sample("preview", "-", "--json", stdin=json.dumps(item).encode())
    assert (taken.code, taken.json["placed"]) == (1, "other kind")
