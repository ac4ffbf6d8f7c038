"""The report of use over the command and HTTP."""

from tests.command import ask
from tests.integration.conftest import Mats, serving, tool

HIDDEN = "\u202e"
ITEMS = [tool("refund", description="Give money back for a card payment")]
REFUND = "com.acme/refund"


def search(mats: Mats, *queries: str, **environment: str) -> list[dict]:
    return [mats("search", "--json", query, **environment).json for query in queries]


def test_what_was_used_and_what_nothing_served_are_listed_and_escaped(mats):
    served, *_ = search(mats, "money back for a payment", *[f"translate {HIDDEN}a poem"] * 2)
    assert mats("feedback", served["query_id"], "--succeeded", REFUND).code == 0
    assert mats("feedback", served["query_id"], "--missing", "a stamp").code == 0
    found = mats("use", "--json").json
    assert found["answers"] == 3
    [one] = found["capabilities"]
    assert (one["id"], one["first"], one["chosen"], one["succeeded"], one["lost_to"]) == (REFUND, 1, 1, 1, [])
    assert [(one["text"], one["requests"]) for one in found["unserved"]] == [
        (f"translate {HIDDEN}a poem", 2), ("a stamp", 1),
    ]  # fmt: skip
    printed = mats("use").out
    assert "a stamp" in printed
    assert mats("use", "--days", "1").out.startswith("3 answers in 1 day\n")
    assert HIDDEN not in printed


def test_the_service_has_the_same(mats):
    search(mats, "translate a poem", "give money back for a card payment")
    with serving(mats) as service:
        assert ask(service, "/registry/use?days=7&limit=1000").json == mats("use", "--days", "7", "--json").json
        assert [ask(service, f"/registry/use?{each}").status for each in ("days=0", "limit=x")] == [422, 422]


def test_without_texts_requests_are_told_apart_by_what_came_nearest(mats):
    search(mats, "translate a poem", "forge a coin", MATS_LOG_QUERIES="hash")
    [one] = mats("use", "--json").json["unserved"]
    assert (one["text"], one["requests"]) == ("", 2)
    assert "(the text is not stored)" in mats("use").out


def test_without_receipts_there_is_nothing_to_tell(mats):
    search(mats, "translate a poem", MATS_RECEIPT_DAYS="0")
    assert mats("use").out.startswith("0 answers in 30 days")
