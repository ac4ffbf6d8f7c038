"""Recorded replies as a model, over a folder made here."""

import json
from pathlib import Path

import pytest

from experiments.context import ExperimentContext
from experiments.experiment import Panel, arm
from experiments.recordings import Recordings
from mats.domain.errors import DependencyFailed, ReplyUnusable, StorageUnusable
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.systems.models import Models
from mats.settings import Settings
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
    row = {"set": "made", "query_id": "q", "request": request, "reply": {"s": [10, 90, 20], "p": ["a step"], "t": ""}}
    write("recorded/rerank.jsonl", row)
    write("recorded/writer.jsonl", {"id": a_registration().id, "reply": json.dumps(FIELDS)})
    write("made/queries.jsonl", {"_id": "q", "text": "another request"})
    return tmp_path / "recorded"


@pytest.fixture
def recordings(folder: Path) -> Recordings:
    return Recordings(folder)


def rerank(recordings: Recordings, query: str, profiles=PROFILES):
    return Models(Settings(), recorded=recordings.ask).reranker().rerank(query, profiles).scores


def test_a_recorded_request_is_recognised_by_query_and_names_whatever_the_prompt_and_order(recordings):
    assert rerank(recordings, " give  the money back") == (0.9, 0.2, 0.1)
    assert recordings.counts == {"scored": 3, "unmatched": 0}
    assert recordings.matches("give the money  back") == (3, 0)


@pytest.mark.parametrize(
    ("query", "profiles"),
    [("another request", PROFILES), ("give the money back", [PROFILES[0], a_profile(), a_profile(name="x")])],
)
def test_a_reply_answers_only_most_of_its_own_candidates(recordings, query, profiles):
    with pytest.raises(DependencyFailed, match="no recorded reply"):
        rerank(recordings, query, profiles)


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
    writer = Models(Settings(), recorded=recordings.ask).writer
    assert writer.describe(a_registration()).enrichment.summary == "Refunds."
    with pytest.raises(ReplyUnusable, match="nothing is recorded"):
        writer.describe(a_registration(name="other"))


def test_tokens_of_a_recorded_reply_are_estimated_at_the_price_of_the_papers_model(recordings):
    usage = Models(Settings(), recorded=recordings.ask).reranker().rerank("give the money back", PROFILES).usage
    assert 100 < usage.input_tokens < 2_000
    assert 0 < usage.output_tokens < 40
    assert usage.usd == pytest.approx((0.035 * usage.input_tokens + 0.14 * usage.output_tokens) / 1e6)


def test_only_queries_with_a_reply_are_asked_and_no_registry_that_was_made_from_a_set(recordings, folder):
    dataset = Dataset("made", [], [JudgedQuery(id, id, frozenset()) for id in ("q", "other")], {}, "")
    models = Models(Settings(encoder="none"), recorded=recordings.ask)
    context = ExperimentContext(data=folder, models=models, recordings=recordings)
    pipeline = arm("pipeline-bm25")
    assert context.counts(Panel("made", (dataset,)), arm("bm25")) == {}
    assert [query.id for query in context._asked_part(dataset, pipeline).queries] == ["q"]
    assert "no recording" in context.lacking(Panel("pool", (dataset,), derived="pool"), pipeline)
    assert context.lacking(Panel("made", (dataset,)), pipeline) == ""
    assert recordings.replied("made") == {"q": "4407618"}
    assert "no recording" in models.lacking({"llm", "conversation"})
