"""Faulty replies of models: broken off, of another shape, enormous, refused, not numbers."""

import json
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest

from mats.domain.errors import DependencyFailed, ReplyUnusable
from mats.ports import RerankResult, Written
from tests.aws.bedrock import Answer, BedrockServer, Cut, Raw, converse_reply, tool_reply
from tests.integration.bedrock_workbench import (
    DIMENSION,
    QUERY,
    Bench,
    assert_nothing_comes_of_it,
    assert_the_answer_comes_without,
    assert_the_raw_profile_stays,
    assert_words_find_without,
    discover_with,
    enriched_by,
)

STOPS = botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("StopReason").enum
FIVE = {
    "summary": "Gives money back.",
    "action": "Refunds a card payment.",
    "keywords": ["refund"],
    "positive_examples": ["pay it back"],
    "negative_examples": ["list payments"],
}
SCORES = {"t": "tool", "s": [90, 5, 40]}
NESTED = b"[" * 5_000 + b"]" * 5_000
ENORMOUS = 10_000_000


@pytest.fixture(scope="module")
def running() -> Iterator[BedrockServer]:
    with BedrockServer() as server:
        yield server


@pytest.fixture(scope="module")
def bench(running: BedrockServer) -> Bench:
    return Bench(running)


@pytest.fixture
def server(running: BedrockServer) -> BedrockServer:
    running.play = None
    running.exchanges.clear()
    return running


def written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def played(server: BedrockServer, content: bytes) -> None:
    server.play = lambda exchange: Raw(content)


def calling(arguments: Any, **more: Any) -> dict[str, Any]:
    return converse_reply([{"toolUse": {"toolUseId": "t", "name": "judge", "input": arguments}}], **more)


def response(*content: Any) -> dict[str, Any]:
    return {**converse_reply([]), "output": {"message": {"role": "assistant", "content": list(content)}}}


def whole_replies(bench: Bench) -> dict[str, bytes]:
    """A valid reply for each model, as short as it gets."""
    vector = {"inputTextTokenCount": 1, "embedding": [1] + [0] * (DIMENSION - 1)}
    return {
        "reranker": written(tool_reply("judge", SCORES)),
        "writer": written(tool_reply("describe", FIVE)),
        "encoder": written(vector),
    }


def assert_lost(bench: Bench, role: str) -> None:
    """The answer, or the profile, is what it would be without the model, which can be asked again."""
    if role == "reranker":
        assert_the_answer_comes_without(bench.reranker)
    elif role == "writer":
        assert_the_raw_profile_stays(bench.writer, DependencyFailed())
    else:
        assert type(bench.encode()) is DependencyFailed


@pytest.mark.parametrize("role", ["reranker", "writer", "encoder"])
@pytest.mark.parametrize("ending", ["the connection ends", "the length says so"])
def test_a_reply_truncated_at_any_byte_is_unusable(server, bench, role, ending):
    whole = whole_replies(bench)[role]
    for at in range(len(whole)):
        act = Cut(whole, at) if ending == "the connection ends" else Raw(whole[:at])
        server.play = lambda exchange, act=act: act
        assert_lost(bench, role)


def test_complete_replies_are_used(server, bench):
    whole = whole_replies(bench)
    played(server, whole["reranker"])
    assert discover_with(reranker=bench.reranker)(QUERY).degraded == ()
    played(server, whole["writer"])
    assert enriched_by(bench.writer, None)[1].kept["com.acme.pay/refund_payment"].profile.enriched
    played(server, whole["encoder"])
    assert list(bench.encode()) == [1.0] + [0.0] * (DIMENSION - 1)


WRONG: list[Any] = [
    [], None, 5, "x", True, {}, [{}], {"message": "no"}, {"__type": "ThrottlingException"},
    {"output": []}, {"output": None}, {"output": 5}, {"output": "x"}, {"output": {}}, {"output": {"other": {}}},
    {"output": {"message": []}}, {"output": {"message": None}}, {"output": {"message": "x"}},
    *({"output": {"message": {"role": "assistant", "content": content}}} for content in (None, 5, "x", {}, {"a": 1})),
    *(response(block) for block in (None, 5, "x", [], [[]], {}, {"unknown": 1}, {"text": None}, {"text": 5})),
    *(response(block) for block in ({"text": ["a"]}, {"text": {}}, {"toolUse": None}, {"toolUse": 5}, {"toolUse": []})),
    *(response({"toolUse": use}) for use in ({}, "x", {"name": 5}, {"name": []}, {"name": "judge"}, {"input": {}})),
    *(calling(arguments) for arguments in (None, 5, "x", "", [], [1, 2, 3], {}, {"s": None}, {"s": {}}, {"s": "1, 2"})),
    *(calling({"t": "tool", "s": s}) for s in ([None] * 3, [[1]] * 3, ["x"] * 3, [{}] * 3, [1], [1] * 1_000)),
    *(calling({"s": [1, 2, x]}) for x in (float("nan"), float("inf"), "9" * 5_000)),
    {**converse_reply([]), "stopReason": 5}, {**converse_reply([]), "stopReason": []},
    {**response({"text": "no"}), "usage": []}, {**response({"text": "no"}), "usage": {"inputTokens": "many"}},
    *({**response({"text": "no"}), "usage": {"inputTokens": float(n)}} for n in ("nan", "inf", "-inf")),
    {**response({"text": "no"}), "metrics": "x", "trace": [], "additionalModelResponseFields": 5},
]  # fmt: skip


@pytest.mark.parametrize("reply", WRONG, ids=lambda reply: json.dumps(reply)[:60])
def test_json_of_another_shape_gives_no_scores_profile_or_vector(server, bench, reply):
    played(server, written(reply))
    assert_nothing_comes_of_it(bench, (DependencyFailed, ReplyUnusable))


NOT_JSON = {
    "nested": NESTED,
    "nested in output": b'{"output":' + NESTED + b"}",
    "nested objects": b'{"output":' * 5_000 + b"1" + b"}" * 5_000,
    "nested open end": b'{"output":[' * 5_000,
    "not UTF-8": b"\xff\xfe\x00",
    "latin-1 inside": written(calling({})).replace(b'"t"', b'"\xe9"'),
    "UTF-16": json.dumps(calling(SCORES)).encode("utf-16"),
    "nothing but space": b" \n" * 100,
    "two replies": written(calling(SCORES)) * 2,
    "lines": b"data: {}\n\n",
    "enormous": b"x" * ENORMOUS,
    "enormous list": b"[" + b"1," * (ENORMOUS // 2) + b"1]",
    "enormous nesting": b"[" * ENORMOUS,
    "enormous number": b"1" * ENORMOUS,
    "enormous page": written({"message": "x" * ENORMOUS}),
}


@pytest.mark.parametrize("content", NOT_JSON.values(), ids=list(NOT_JSON))
def test_content_that_is_no_reply_is_a_failed_dependency(server, bench, content):
    played(server, content)
    assert_nothing_comes_of_it(bench)


@pytest.mark.parametrize("depth", [50, 100, 200, 300, 400, 500, 700, 900, 2_000, 5_000, 50_000])
def test_arguments_nested_to_any_depth_are_unusable(server, bench, depth):
    inner = b"[" * depth + b"]" * depth
    for name in ("judge", "describe"):
        reply = written(tool_reply(name, {**FIVE, "summary": "HERE", "s": "HERE"})).replace(b'"HERE"', inner)
        played(server, reply)
        assert_nothing_comes_of_it(bench, (DependencyFailed, ReplyUnusable))
        played(server, written(converse_reply([{"text": '{"s":' + inner.decode() + "}"}])))
        assert_nothing_comes_of_it(bench, (DependencyFailed, ReplyUnusable))


def test_an_enormous_reply_with_a_valid_tool_call_is_used(server, bench):
    padding = {"text": "x" * ENORMOUS}
    played(server, written(response(padding, *calling(SCORES)["output"]["message"]["content"])))
    assert bench.rerank().scores == (0.9, 0.05, 0.4)
    played(server, written(response(padding, *tool_reply("describe", FIVE)["output"]["message"]["content"])))
    assert bench.describe().enrichment.summary == FIVE["summary"]


@pytest.mark.parametrize(
    "changes",
    [
        {"summary": "x" * ENORMOUS},
        {"keywords": ["x" * ENORMOUS]},
        {"keywords": ["x"] * (ENORMOUS // 4)},
        {"positive_examples": [["x"] * (ENORMOUS // 4)]},
    ],
    ids=["summary", "entry", "entries", "lists"],
)
def test_enormous_fields_are_unusable(server, bench, changes):
    played(server, written(tool_reply("describe", FIVE | changes)))
    failed = bench.describe()
    assert type(failed) is ReplyUnusable
    assert len(str(failed)) < 300
    assert_the_raw_profile_stays(bench.writer, failed)


@pytest.mark.parametrize("scores", [[1] * (ENORMOUS // 2), "1," * (ENORMOUS // 2), ["x" * ENORMOUS], [10**4_000] * 9])
def test_enormous_scores_are_void(server, bench, scores):
    played(server, written(calling({"t": "tool", "s": scores})))
    result = bench.rerank()
    assert isinstance(result, RerankResult)
    assert 0 < len(result.void) < 300
    assert_the_answer_comes_without(bench.reranker)


@pytest.mark.parametrize("stop", STOPS)
def test_every_stop_reason_gives_scores_or_drops_the_signal(server, bench, stop):
    refused = stop in ("content_filtered", "guardrail_intervened")
    server.play = lambda exchange: Answer(tool_reply(exchange, SCORES, stop=stop))
    result = bench.rerank()
    assert isinstance(result, RerankResult)
    assert result.scores == (() if refused else (0.9, 0.05, 0.4))
    assert result.void == (f"the model refused ({stop})" if refused else "")
    server.play = lambda exchange: Answer(converse_reply([], stop=stop))
    assert bench.rerank().void
    assert_the_answer_comes_without(bench.reranker)


@pytest.mark.parametrize("stop", STOPS)
def test_every_stop_reason_gives_an_enriched_or_the_raw_profile(server, bench, stop):
    useless = {
        "content_filtered", "guardrail_intervened", "max_tokens", "model_context_window_exceeded",
        "malformed_model_output", "malformed_tool_use",
    }  # fmt: skip
    server.play = lambda exchange: Answer(tool_reply(exchange, FIVE, stop=stop))
    made = bench.describe()
    assert type(made) is (ReplyUnusable if stop in useless else Written)
    server.play = lambda exchange: Answer(converse_reply([], stop=stop))
    failed = bench.describe()
    assert type(failed) is ReplyUnusable
    assert_the_raw_profile_stays(bench.writer, failed)


def test_an_unknown_stop_reason_is_ignored(server, bench):
    played(server, written(calling(SCORES, stop="the_model_felt_like_it")))
    assert bench.rerank().scores == (0.9, 0.05, 0.4)


@pytest.mark.parametrize(
    "usage", [None, {}, {"inputTokens": -5, "outputTokens": -1}, {"inputTokens": None}, {"x": 10**400}]
)
def test_an_invalid_usage_counts_as_zero_and_keeps_the_scores(server, bench, usage):
    played(server, written({**calling(SCORES), "usage": usage}))
    result = bench.rerank()
    assert result.scores == (0.9, 0.05, 0.4)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (0, 0)


ONE = [1.0] + [0.0] * (DIMENSION - 1)
NO_VECTORS: dict[str, Any] = {
    "none": {}, "null": {"embedding": None}, "text": {"embedding": "x"}, "object": {"embedding": {"0": 1.0}},
    "a list": ONE, "number": 5, "empty": {"embedding": []},
    "one too few": {"embedding": ONE[:-1]}, "one too many": {"embedding": [*ONE, 0.0]},
    "another dimension": {"embedding": [1.0] * 1024}, "enormous": {"embedding": [1] * (ENORMOUS // 2)},
    "zero": {"embedding": [0.0] * DIMENSION}, "minus zero": {"embedding": [-0.0] * DIMENSION},
    "too small to have a direction": {"embedding": [1e-300] * DIMENSION},
    "too large to have a length": {"embedding": [1e200] * DIMENSION},
    "by type only": {"embeddingsByType": {"float": ONE}},
    **{
        f"{what} inside": {"embedding": [component, *ONE[1:]]}
        for what, component in {
            "NaN": float("nan"), "infinity": float("inf"), "minus infinity": float("-inf"), "true": True, "null": None,
            "text": "1.0", "list": [1.0], "an integer beyond all floats": 10**400,
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("answer", NO_VECTORS.values(), ids=list(NO_VECTORS))
def test_an_unusable_vector_falls_back_to_lexical_search(server, bench, answer):
    played(server, written(answer))
    failed = bench.encode()
    assert type(failed) is DependencyFailed
    assert "amazon.titan-embed-text-v2:0" in str(failed)
    assert len(str(failed)) < 300
    assert_words_find_without(bench.encoder, DependencyFailed())


def test_a_vector_of_another_length_is_normalized(server, bench):
    played(server, written({"embedding": [3, 4.0, *[0] * (DIMENSION - 2)]}))
    assert list(bench.encode())[:3] == pytest.approx([0.6, 0.8, 0.0])
