"""`mats list` and `GET /capabilities`: pages of what the caller may see. `mats remove` of several."""

from pathlib import Path

import pytest

from mats.client import Client, WrongRequest
from tests.integration.conftest import Mats, serving, tool

ITEMS = [
    *({**tool(f"n{number:03}", description=f"Does number {number}"), "namespace": "org.many"} for number in range(120)),
    {**tool("payroll", visible_to=["finance"]), "namespace": "com.acme.hr"},
    {**tool("refund", tags=["money"]), "namespace": "com.acme.pay"},
    {**tool("chat"), "namespace": "com.acme", "kind": "agent"},
    {**tool("refund", lifecycle="deprecated"), "namespace": "com.acmes"},
]

HIDDEN = "com.acme.hr/payroll"


def listed(mats: Mats, *arguments: str, **more: str) -> list[str]:
    return [one["id"] for one in mats("list", *arguments, "--json", **more).json["capabilities"]]


def test_a_list_has_what_the_caller_may_see_in_order_of_id(mats: Mats):
    assert listed(mats, "--namespace", "com.acme") == ["com.acme.pay/refund", "com.acme/chat"]
    assert HIDDEN in listed(mats, "--namespace", "com.acme", MATS_AUDIENCES="finance")
    assert listed(mats, "--kind", "agent") == ["com.acme/chat"]
    assert listed(mats, "--tag", "money") == ["com.acme.pay/refund"]
    assert listed(mats, "--namespace", "zz.nothing") == []
    every = listed(mats, "--limit", "1000")
    assert (len(every), every) == (123, sorted(every))


def test_pages_continue_after_an_id(mats: Mats):
    first = mats("list", "--limit", "3", "--json").json
    assert first["following"] == first["capabilities"][-1]["id"]
    rest = listed(mats, "--limit", "1000", "--after", first["following"])
    assert [one["id"] for one in first["capabilities"]] + rest == listed(mats, "--limit", "1000")
    assert mats("list", "--limit", "1000", "--json").json["following"] is None
    assert "--after" in mats("list", "--limit", "3").err


def test_a_list_shows_kind_trust_and_summary(mats: Mats):
    mats("trust", "com.acmes/refund", "70")
    shown = mats("list", "--namespace", "com.acmes").out
    assert "com.acmes/refund" in shown
    assert "tool, deprecated" in shown
    assert "70" in shown
    assert "Does number 7" in mats("list", "--after", "org.many/n006", "--limit", "1").out


def test_the_api_and_its_client_list_the_same(mats: Mats):
    with serving(mats) as service, Client(service.url) as client:
        assert [one.id for one in client.list()] == listed(mats, "--limit", "1000")
        assert [one.id for one in client.list(kinds="agent", namespaces=["com.acme", "org"])] == ["com.acme/chat"]
        assert client.list(tags=["money"]).__next__().tags == ["money"]
        with pytest.raises(WrongRequest):
            list(client.list(kinds=["robot"]))


def test_several_are_removed_and_an_unknown_one_is_named(mats: Mats):
    ran = mats("remove", "org.many/n000", "org.many/n999", "org.many/n001", "org.many/n000", "--json")
    assert (ran.code, ran.json) == (1, {"removed": ["org.many/n000", "org.many/n001"], "unknown": ["org.many/n999"]})
    assert "org.many/n999" in ran.err
    assert listed(mats, "--namespace", "org.many", "--limit", "1") == ["org.many/n002"]


def test_what_was_removed_comes_back_by_an_export_with_its_trust(mats: Mats, tmp_path: Path):
    mats("trust", "com.acmes/refund", "70").done()
    before, file = mats("show", "com.acmes/refund", "--json").json, str(tmp_path / "all.jsonl")
    mats("export", file).done()
    assert mats("remove", "com.acmes/refund").done().out == "com.acmes/refund: removed\n"
    assert "no version of it is shown" in mats("show", "com.acmes/refund").out
    assert mats("import", file, "--json").json["new"] == 1
    after = mats("show", "com.acmes/refund", "--json").json
    assert [after[name] for name in ("registration", "trust")] == [before["registration"], 70]


def test_a_namespace_is_removed_with_all_below_it(mats: Mats):
    dry = mats("remove", "--namespace", "com.acme", "--dry-run", "--json")
    assert dry.json["would_remove"] == [HIDDEN, "com.acme.pay/refund", "com.acme/chat"]
    mats("remove", "--namespace", "com.acme").fails(1, "3 capabilities in com.acme and below", "--yes")
    assert mats("stats", "--json").json["registered"] == 124
    assert mats("remove", "--namespace", "com.acme.*", "--yes").out.strip() == "3 capabilities removed"
    assert mats("stats", "--json").json["registered"] == 121
    assert listed(mats, "--limit", "1") == ["com.acmes/refund"]
    assert mats("remove", "--namespace", "com.acme", "--yes").code == 1


def test_an_unknown_id_names_the_nearest_that_the_caller_may_see(mats: Mats):
    for command in (["show"], ["trust"], ["preview"]):
        ran = mats(*command, "com.acme.pay/refnd", *(["5"] if command == ["trust"] else []))
        assert (ran.code, "did you mean `com.acme.pay/refund`" in ran.err) == (1, True), command
    assert f"`{HIDDEN}`" not in mats("show", f"{HIDDEN}s").err
    assert f"`{HIDDEN}`" in mats("show", f"{HIDDEN}s", MATS_AUDIENCES="finance").err
    with serving(mats) as service:
        status, problem = service.request("/capabilities/com.acme.pay/refnd")
        assert (status, "did you mean `com.acme.pay/refund`" in problem["detail"]) == (404, True)
        call = {"name": "get_capability", "arguments": {"id": "com.acme.pay/refnd"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        _, reply = service.request("/mcp", message)
        assert "did you mean `com.acme.pay/refund`" in str(reply)
