"""Demand and the owner's mirror of the local registry, over the command and HTTP."""

from tests.command import ask
from tests.integration.conftest import Mats, serving, tool

HIDDEN = "\u202e"
ITEMS = [tool("refund", description="Give money back for a card payment")]


def search(mats: Mats, *queries: str, **environment: str) -> list[dict]:
    return [mats("search", "--json", query, **environment).json for query in queries]


def test_what_was_not_found_is_grouped_and_what_was_is_not(mats):
    search(mats, "translate a poem to French", f"translate {HIDDEN}my poem", "money back for a payment")
    shown = mats("demand", "--json").json
    [gap] = shown["gaps"]
    assert (shown["requests"], shown["ungrouped"]) == (3, 0)
    assert gap["name"].startswith("translate, poem")
    assert (gap["requests"], gap["callers"], gap["verdicts"]) == (2, 1, {"none": 2})
    assert sorted(gap["examples"]) == ["translate a poem to French", f"translate {HIDDEN}my poem"]
    printed = mats("demand")
    assert "translate, poem" in printed.out
    assert HIDDEN not in printed.out
    assert HIDDEN not in mats("demand", "--json").out


def test_without_texts_and_vectors_requests_are_counted_alone(mats):
    search(mats, "translate a poem", "translate the poem", MATS_LOG_QUERIES="hash")
    found = mats("demand", "--json").json
    assert (found["gaps"], found["ungrouped"]) == ([], 2)
    assert "the texts of 2 requests are not stored" in mats("mirror").err


def test_the_service_has_the_same(mats):
    search(mats, "translate a poem", "translate the poem", "give money back for a card payment")
    with serving(mats) as service:
        assert ask(service, "/registry/demand?days=7").json["gaps"] == mats("demand", "--json").json["gaps"]
        assert ask(service, "/registry/demand?days=0").status == 422
        assert ask(service, "/registry/mirror?limit=1000").json == mats("mirror", "--json").json
        one = ask(service, "/registry/mirror").json["capabilities"][0]
        shown = ask(service, f"/registry/mirror?id={one['id']}")
        assert shown.json == mats("mirror", one["id"], "--json").json
        wrong = ("id=com.acme/nothing", "days=0", "limit=x")
        assert [ask(service, f"/registry/mirror?{each}").status for each in wrong] == [404, 422, 422]


def test_without_receipts_there_is_nothing_to_tell(mats):
    search(mats, "translate a poem", MATS_RECEIPT_DAYS="0")
    assert "no receipts" in mats("demand").err


def test_the_command_shows_what_was_asked_and_escapes_it(mats):
    mats("search", "--json", f"give {HIDDEN}money back for a card payment")
    shown = mats("mirror", "--json").json
    assert (shown["requests"], shown["causes"]) == (1, {})
    printed = mats("mirror", shown["capabilities"][0]["id"])
    assert "1 time; 0 lost" in printed.out
    assert HIDDEN not in printed.out
    assert "never among the first 5 of 1 request;" in mats("mirror").out
    assert mats("mirror", "com.acme/nothing").code == 1
