"""Recorded replies and judgements as a model, over a folder made here."""

import json
from pathlib import Path

import pytest

from experiments.recordings import Recordings
from mats.bootstrap import models
from mats.domain.errors import DependencyFailed, ReplyUnusable, StorageUnusable
from tests.builders import a_profile, a_registration

PROFILES = [a_profile(name=name, description=f"{name} things") for name in ("refund", "list", "send")]
SHOWN = """<request>"give the money back"</request>
<candidates>
1 tool send | does old words
2 tool refund | does old words
3 tool list
</candidates>"""
FIELDS = {"summary": "Refunds.", "action": "", "keywords": ["money"], "positive_examples": [], "negative_examples": []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    def write(name: str, *rows: object) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    request = {"messages": [{"role": "user", "content": SHOWN}]}
    write("recorded/rerank.jsonl", {"request": request, "reply": {"s": [10, 90, 20]}})
    write("recorded/writer.jsonl", {"id": a_registration().id, "reply": json.dumps(FIELDS)})
    grades = {PROFILES[0].id: 80, PROFILES[1].id: 30}
    write("recorded/judgements/made.jsonl", {"query_id": "q", "scores": grades})
    write("made/queries.jsonl", {"_id": "q", "text": "another request"})
    return tmp_path / "recorded"


@pytest.fixture
def recordings(folder: Path) -> Recordings:
    return Recordings(models.prices(), folder=folder)


def rerank(recordings: Recordings, query: str, profiles=PROFILES):
    return recordings.reranker("recorded", models.prompt("rerank")).rerank(query, profiles).scores


def test_a_recorded_request_is_recognised_by_query_and_names_whatever_the_prompt_and_order(recordings):
    assert rerank(recordings, " give  the money back") == (0.9, 0.2, 0.1)
    assert recordings.counts == {"replies": 1, "scored": 3, "unjudged": 0}


def test_another_request_is_answered_by_its_judgements_and_counts_what_is_not_judged(recordings):
    assert rerank(recordings, "another request") == (0.8, 0.3, 0.0)
    assert recordings.counts == {"judgements": 1, "scored": 2, "unjudged": 1}


@pytest.mark.parametrize(
    ("query", "profiles"), [("never seen", PROFILES), ("another request", [PROFILES[0], PROFILES[2], a_profile()])]
)
def test_a_request_of_which_fewer_than_half_is_known_is_refused_as_by_a_failing_model(recordings, query, profiles):
    with pytest.raises(DependencyFailed, match="no recording"):
        rerank(recordings, query, profiles)
    assert recordings.counts["refused"] == 1


def test_of_equal_names_the_one_with_the_most_equal_words_has_the_score(recordings, folder):
    shown = SHOWN.replace("3 tool list", "3 tool refund | does things for cards")
    request = {"messages": [{"role": "user", "content": shown}]}
    (folder / "rerank.jsonl").write_text(json.dumps({"request": request, "reply": {"s": [0, 1, 70]}}))
    twins = [a_profile(name="refund", description="things for cards"), a_profile(name="send")]
    assert rerank(recordings, "give the money back", twins) == (0.7, 0.0)


@pytest.mark.parametrize(
    "row", ["not JSON", "{}", '{"request": {"messages": [{"content": "hello"}]}, "reply": {"s": [1]}}']
)
def test_a_row_that_is_no_recording_is_named(recordings, folder, row):
    (folder / "rerank.jsonl").write_text(row)
    with pytest.raises(StorageUnusable, match=r"rerank\.jsonl"):
        rerank(recordings, "give the money back")


def test_the_writer_has_the_recorded_fields_and_leaves_the_rest_raw(recordings):
    writer = recordings.writer("recorded", models.prompt("enrich"))
    assert writer.describe(a_registration()).enrichment.summary == "Refunds."
    with pytest.raises(ReplyUnusable, match="nothing is recorded"):
        writer.describe(a_registration(name="other"))


def test_a_folder_without_recordings_is_said(recordings, folder):
    assert recordings.warning() == ""
    assert "holds no recordings" in Recordings(models.prices(), folder=folder / "missing").warning()
