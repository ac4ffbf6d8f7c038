"""From outcomes to an evaluation: the commands."""

import pytest

from tests.integration.conftest import Mats, tool

ITEMS = [
    tool("refund", description="Give money back for a card payment"),
    tool("invoice", description="Write a bill for a payment"),
]


@pytest.fixture(autouse=True)
def one_success(mats: Mats) -> None:
    answer = mats("search", "--json", "money back for a payment").json
    assert mats("feedback", answer["query_id"], "--succeeded", answer["results"][0]["id"]).code == 0


def test_outcomes_are_a_set_that_evaluate_and_gate_take(mats, tmp_path):
    folder = tmp_path / "own"
    written = mats("dataset", "from-outcomes", str(folder), "--json").json
    assert (written["documents"], written["queries"], written["left_out"]) == (2, 1, {})
    measured = mats("evaluate", str(folder), "--variant", "bm25", "--json").done()
    assert (measured.json["queries"], measured.json["failed"]) == (1, 0)
    assert mats("dataset", "check", str(folder)).code == 0
    with (folder / "qrels.tsv").open("a", encoding="utf-8") as qrels:
        qrels.write("unasked\tcom.acme/refund\t1\n")
    unasked = "judged, but not in queries.jsonl: unasked"
    assert unasked in mats("dataset", "check", str(folder)).fails(1).out
    assert unasked in mats("evaluate", str(folder), "--variant", "bm25").done().out
    baseline = tmp_path / "baseline.json"
    arguments = ("gate", "--baseline", str(baseline), "--data", str(tmp_path))
    assert mats(*arguments, "--update", "--set", "own").code == 0
    assert mats(*arguments).code == 0


def test_a_folder_with_files_is_replaced_by_force_alone(mats, tmp_path):
    assert mats("dataset", "from-outcomes", str(tmp_path / "own")).code == 0
    mats("dataset", "from-outcomes", str(tmp_path / "own")).fails(1, "--force")
    mats("dataset", "from-outcomes", str(tmp_path / "own" / "qrels.tsv" / "x")).fails(1, "cannot be written")


def test_unconfirmed_outcomes_are_told(mats, tmp_path):
    printed = mats("dataset", "from-outcomes", str(tmp_path / "own"), "--confirmed").done()
    assert "neither an operator nor two callers confirm" in printed.out
