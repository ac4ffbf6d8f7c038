"""Finding a decision in the logs and comparing it with now."""

import json

import pytest

from mats.domain.errors import NotPossible
from mats.domain.ranking.query import Query
from mats.local.cli.feedback import decision, logged_query, moves
from tests.world import GEOCODE, MAIL, REFUND, discover_over, indexed

RECORD = {
    "event": "discovered",
    "query_id": "q1",
    "query": "money back",
    "filter": {"kinds": ["tool"], "namespaces": [], "tags": []},
    "candidates": [
        {"position": 1, "id": MAIL.id, "score": 0.4, "rev": 1, "signals": {"bm25": 0.4}},
        {"position": 2, "id": "org.gone/x", "score": 0.3, "rev": 7, "signals": {}},
    ],
}


def a_log(path, *lines: str):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_decision_is_found_among_other_lines_in_any_of_the_logs(tmp_path):
    noise = ["2026-01-01 ERROR mats.pump {half a", "Traceback", json.dumps({"query_id": "q1"}), json.dumps([1])]
    logs = [
        a_log(tmp_path / "mats.log", *noise),
        a_log(tmp_path / "mats.log.1", f"2026-01-01 00:00:00,1 INFO mats {json.dumps(RECORD)}"),
    ]
    assert decision("q1", logs) == RECORD


def test_decision_in_no_log_is_reported_as_missing(tmp_path):
    with pytest.raises(NotPossible, match="q2"):
        decision("q2", [a_log(tmp_path / "mats.log", json.dumps(RECORD))])


def test_query_logged_as_hash_cannot_be_replayed():
    hashed = {key: value for key, value in RECORD.items() if key != "query"} | {"query_hash": "ab"}
    with pytest.raises(NotPossible, match="MATS_LOG_QUERIES"):
        logged_query(hashed)


def test_every_candidate_of_then_and_now_has_its_two_places():
    shortlist = discover_over(indexed(REFUND, GEOCODE, MAIL))(Query(query="money back to a customer"))
    moved = {move["id"]: move for move in moves(RECORD, shortlist)}
    assert list(moved)[-1] == "org.gone/x"
    gone = {"position": 2, "score": 0.3, "rev": 7, "signals": {}, "memory": 0.0}
    assert moved["org.gone/x"] == {"id": "org.gone/x", "was": gone, "now": None}
    assert moved[MAIL.id]["was"]["signals"] == {"bm25": 0.4}
    assert moved[MAIL.id]["now"] is not None
    assert (moved[REFUND.id]["was"], moved[REFUND.id]["now"]["position"]) == (None, 1)
