"""Receipts and feedback of the local registry: command, HTTP, client and Python processes."""

import json
import re

import pytest

from mats.client import Client, NotFound, WrongRequest
from tests.command import sql
from tests.integration.conftest import Mats, rows, tool

ITEMS = [
    tool("refund", description="Give money back for a card payment"),
    tool("invoice", description="Write a bill for a payment"),
]


def test_the_command_reports_on_an_answer_of_the_command(stocked):
    answer = stocked("search", "--json", "money back for a payment").json
    first = answer["results"][0]["id"]
    told = stocked("feedback", answer["query_id"], "--selected", first, "--succeeded", first, "--json")
    assert (told.code, told.json) == (0, {"query_id": answer["query_id"], "recorded": 2, "missing": False})
    assert stocked("feedback", answer["query_id"], "--succeeded", first).out == "0 new outcomes recorded\n"
    assert sql(stocked.home / "mats.db", "SELECT id FROM outcomes") == [(first,)]


def test_an_operator_confirms_what_a_caller_reported(stocked):
    answer = stocked("search", "--json", "a bill for the card").json
    query_id, first = answer["query_id"], answer["results"][0]["id"]
    assert stocked("confirm", query_id).code == 1
    assert stocked("feedback", query_id, "--succeeded", first).code == 0
    assert stocked("confirm", query_id, "--json").json == {"query_id": query_id, "confirmed": True}
    assert confirmed(stocked) == {query_id}
    assert stocked("confirm", query_id, "--withdraw").out == f"{query_id}: no longer confirmed\n"
    assert confirmed(stocked) == set()
    assert stocked("withdraw", "local", "--json").json["reports_withdrawn"] > 0
    for caller in ("local", "token:ci", "ci"):
        again = stocked("withdraw", caller).done()
        assert again.out == f"{caller}: 0 reports withdrawn\n"
        assert "It reported nothing, or an operator confirmed it" in again.err
    assert sql(stocked.home / "mats.db", "SELECT * FROM outcomes") == []
    stocked("withdraw", "").fails(2, "name a caller")


def test_a_wrong_report_names_the_options_that_gave_it(stocked):
    query_id = stocked("search", "--json", "money back").json["query_id"]
    stocked("feedback", query_id).fails(2, "give --selected ID, --succeeded ID, --failed ID, --wrong ID or --missing")
    wrong = stocked("feedback", query_id, "--wrong", "a/b", "--failed", "c/d", "--missing", "x" * 3_000).fails(2)
    assert re.findall(r"--\w+(?=: )", wrong.err) == ["--missing"]
    wrong = stocked("feedback", query_id, "--wrong", "a/b", "--failed", "c/d").fails(2)
    assert re.findall(r"(--\w+): '(\w/\w)' is not among", wrong.err) == [("--failed", "c/d"), ("--wrong", "a/b")]


def confirmed(stocked: Mats) -> set[str]:
    return {id for (id,) in sql(stocked.home / "mats.db", "SELECT query_id FROM reports WHERE confirmed")}


def test_the_command_says_how_to_report(stocked):
    text = stocked("search", "money back").out
    assert re.search(r"Report what happened: mats feedback \w+ --succeeded ID", text)
    assert "--missing WHAT" in stocked("search", "a poem about a card").out
    assert "Report" not in stocked("search", "money back", MATS_RECEIPT_DAYS="0").out
    assert "Report" not in stocked("search", "money back", "--namespace", "com.nobody").out


def test_the_client_reports(service):
    with Client(service.url) as client:
        answer = client.discover("money back for a payment")
        first, second = (result.id for result in answer.results)
        told = client.feedback(answer.query_id, {first: ["selected", "succeeded"], second: "wrong"}, missing="a stamp")
        assert told.recorded == 3
        assert client.feedback(answer.query_id, {}, missing="two stamps").recorded == 0
        with pytest.raises(NotFound):
            client.feedback("unknown", {first: "wrong"})
        with pytest.raises(WrongRequest, match="report one of them"):
            client.feedback(answer.query_id, {first: ["failed", "succeeded"]})


def test_previews_leave_no_receipts(tmp_path):
    stocked = Mats(tmp_path / "home")
    assert stocked("import", "-", stdin=rows(*ITEMS)).code == 0
    assert stocked("preview", "-", "--json", stdin=json.dumps(ITEMS[0]).encode()).code == 0
    assert sql(stocked.home / "mats.db", "SELECT * FROM receipts") == []
