"""Writer, reranker and encoder on a healthy service: what they ask, what they make of the answers, what it costs."""

import json
import math
from dataclasses import replace

import pytest

from mats.bootstrap import models as bootstrap
from mats.domain.errors import DependencyFailed, ReplyUnusable
from mats.domain.profile.profile import Profile
from mats.settings import Settings
from tests.aws.bedrock import Answer, BedrockServer, Exchange, Refuse, converse_reply, tool_reply
from tests.bedrock.conftest import Models, models_of
from tests.builders import a_profile, a_registration
from tests.integration.bedrock_workbench import FIVE, LITE, MICRO, TITAN

PLAIN = "qwen.qwen3-32b-v1:0"  # A model that cannot be forced to call a tool


@pytest.fixture(scope="module")
def models(running: BedrockServer) -> Models:
    return models_of(Settings(bedrock=True))


def several(count: int) -> list[Profile]:
    return [a_profile(name=f"tool-{n}", description=f"does word{n}") for n in range(count)]


def texts_of(exchange: Exchange) -> list[str]:
    return [block["text"] for message in exchange.body["messages"] for block in message["content"]]


def test_the_writer_asks_once_through_a_forced_tool_at_temperature_0_and_listed_prices(server, models):
    server.play = lambda exchange: Answer(tool_reply(exchange, FIVE, input_tokens=1_000_000, output_tokens=500_000))
    written = models.writer.describe(a_registration())
    [asked] = server.exchanges
    assert (asked.operation, asked.model) == ("Converse", LITE)
    assert asked.body["inferenceConfig"]["temperature"] == 0
    assert asked.body["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 1}}
    assert asked.body["toolConfig"]["toolChoice"] == {"tool": {"name": "describe"}}
    assert [message["role"] for message in asked.body["messages"]] == ["user"]
    assert (written.enrichment.summary, written.notes) == (FIVE["summary"], ())
    assert (written.usage.input_tokens, written.usage.output_tokens) == (1_000_000, 500_000)
    assert written.usage.usd == pytest.approx(0.06 + 0.24 / 2)


@pytest.mark.parametrize("k", [1, 25])
def test_the_reranker_scores_all_candidates_in_one_call_by_position(server, models, k):
    server.play = lambda exchange: Answer(tool_reply(exchange, {"t": "tool", "s": [4 * n for n in range(k)]}))
    result = models.reranker.rerank("word1", several(k))
    [asked] = server.exchanges
    assert asked.model == MICRO
    assert asked.body["toolConfig"]["toolChoice"] == {"tool": {"name": "judge"}}
    assert result.scores == tuple(4 * n / 100 for n in range(k))
    assert (result.intent, result.clipped, result.cut_off, result.void) == ("tool", 0, False, "")
    assert result.usage.usd == pytest.approx((100 * 0.035 + 20 * 0.14) / 1e6)
    assert all(f"\n{n + 1} tool tool-{n} | " in texts_of(asked)[0] for n in range(k))


def test_the_type_is_asked_for_only_if_a_candidate_has_type_tags(server, models):
    for tags, model, asked_for in (
        ([], MICRO, ["s"]), (["payment"], MICRO, ["t", "s"]), ([], PLAIN, ["s"]), (["payment"], PLAIN, ["t", "s"]),
    ):  # fmt: skip
        reranker = replace(models.reranker, name=model)
        result = reranker.rerank("x", [*several(2), a_profile(name="pay", type_tags=tags)])
        body = server.exchanges[-1].body
        if model == MICRO:
            [tool] = body["toolConfig"]["tools"]
            assert list(tool["toolSpec"]["inputSchema"]["json"]["properties"]) == asked_for
            assert len(result.scores) == 3
        assert ('"t"' in json.dumps(body["system"]).replace("\\", "")) == (model == PLAIN and "t" in asked_for)


DIALECTS = {
    "us.amazon.nova-2-lite-v1:0": "tool",
    "anthropic.claude-haiku-4-5-20251001-v1:0": "tool",
    "us.anthropic.claude-3-5-haiku-20241022-v1:0": "tool",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0": "tool",
    "mistral.mistral-large-3-675b-instruct": "any",
    "qwen.qwen3-32b-v1:0": None,
}


@pytest.mark.parametrize(("model", "choice"), DIALECTS.items())
def test_every_family_of_models_gets_a_request_it_accepts(server, model, choice):
    models = models_of(Settings(bedrock=True, rerank_model=model, writer_model=model))
    words = {"judge": {"t": "tool", "s": [1, 2, 3]}, "describe": FIVE}

    def play(exchange: Exchange) -> Answer | None:
        key = "judge" if "<candidates>" in texts_of(exchange)[0] else "describe"
        return None if choice else Answer(converse_reply([{"text": json.dumps(words[key])}], stop="end_turn"))

    server.play = play
    assert len(models.reranker.rerank("word1", several(3)).scores) == 3
    assert models.writer.describe(a_registration()).enrichment.summary
    assert server.rejected == []
    for asked in server.exchanges:
        assert asked.model == model
        assert list(asked.body.get("toolConfig", {}).get("toolChoice", {None: {}})) == [choice]
        assert ("additionalModelRequestFields" in asked.body) == ("nova" in model)
        assert len(asked.body["system"]) == (2 if choice is None else 1)


def test_vectors_have_1024_components_and_length_1(server, models):
    server.play = lambda exchange: Answer({"embedding": [3.0, -4.0] + [0.0] * 1022, "inputTextTokenCount": 5})
    vector = models.encoder.encode_query("refund a card")
    assert (len(vector), math.hypot(*vector)) == (1024, pytest.approx(1))
    assert list(vector[:2]) == pytest.approx([0.6, -0.8])
    assert server.exchanges[0].body == {"inputText": "refund a card", "dimensions": 1024, "normalize": True}


def test_cohere_is_told_what_a_text_is_for(server, models):
    encoder = bootstrap.load_encoder(Settings(bedrock=True, encoder="cohere.embed-v4:0"))
    vectors = [encoder.encode_query("refund a card"), *encoder.encode_documents(["refund a card"])]
    assert [(len(vector), math.hypot(*vector)) for vector in vectors] == [(1024, pytest.approx(1))] * 2
    form = {"texts": ["refund a card"], "embedding_types": ["float"], "output_dimension": 1024}
    assert [one.body for one in server.exchanges] == [
        {**form, "input_type": purpose} for purpose in ("search_query", "search_document")
    ]
    server.play = lambda exchange: Answer({"embeddings": {"float": []}})
    with pytest.raises(DependencyFailed, match="no vector"):
        encoder.encode_query("refund a card")


def test_documents_keep_their_order_under_concurrency(server, models):
    def play(exchange: Exchange) -> Answer:
        n = int(exchange.body["inputText"])
        vector = [float(i == n) for i in range(1024)]
        return Answer({"embedding": vector, "inputTextTokenCount": 1}, delay_s=0.01 * (n % 3 == 0))

    server.play = play
    vectors = models.encoder.encode_documents([str(n) for n in range(40)])
    assert [vector.index(1.0) for vector in vectors] == list(range(40))
    assert models.encoder.encode_documents([]) == []


@pytest.mark.parametrize("text", ["word " * 30_000, "🧾" * 30_000, "e\u0301" * 30_000])
def test_long_text_is_truncated_at_its_end_for_the_encoder(server, models, text):
    models.encoder.encode_query(text)
    [asked] = server.exchanges
    assert server.rejected == []
    assert text.startswith(asked.body["inputText"])
    assert 7_990 <= len(asked.body["inputText"].encode()) <= 8_000


def test_a_failed_document_loses_only_its_own_vector(server, models):
    server.play = lambda exchange: Refuse("ValidationException") if exchange.body["inputText"] == "bad" else None
    vectors = models.encoder.encode_documents(["one", "bad", "two"])
    assert [vector is not None for vector in vectors] == [True, False, True]
    with pytest.raises(DependencyFailed, match="ValidationException"):
        models.encoder.encode_documents(["bad", "bad"])


def test_the_meter_adds_up_by_model(server):
    models = models_of(Settings(bedrock=True))
    models.reranker.rerank("x", several(3))
    first = models.meter.totals()[MICRO]
    models.reranker.rerank("x", several(3))
    models.encoder.encode_documents(["refund"] * 10)
    server.play = lambda exchange: Answer(tool_reply(exchange, FIVE | {"summary": 5}))
    with pytest.raises(ReplyUnusable):
        models.writer.describe(a_registration())
    totals = models.meter.totals()
    assert set(totals) == {MICRO, LITE, TITAN}
    assert totals[MICRO] == first.plus(first)
    assert (totals[LITE].input_tokens, totals[LITE].output_tokens) == (200, 40)
    assert totals[TITAN].output_tokens == 0
    assert totals[TITAN].usd == pytest.approx(totals[TITAN].input_tokens * 0.02 / 1e6)


def test_labels_go_into_bedrocks_log_and_not_into_the_prompt(server, models):
    models.reranker.rerank("x", several(3), {"query_id": "0af3", "odd": "a;b\nc", "empty": ""})
    models.writer.describe(a_registration(), {"event_id": "e1"})
    models.reranker.rerank("x", several(3))
    metadata = [exchange.body.get("requestMetadata") for exchange in server.exchanges]
    assert metadata == [{"query_id": "0af3", "odd": "a_b_c"}, {"event_id": "e1"}, None]
    assert "0af3" not in json.dumps(server.exchanges[0].body["messages"])
