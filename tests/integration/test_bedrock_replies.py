"""Faulty replies of models: broken off, of another shape, enormous, refused, not numbers."""

import json
from typing import Any

import botocore.session
import pytest

from mats.domain.errors import DependencyFailed, ReplyUnusable
from mats.ports import RerankResult, Written
from tests.aws.bedrock import Answer, BedrockServer, Cut, Raw, converse_reply, tool_reply
from tests.integration.bedrock_workbench import DIMENSION, FIVE, Bench, assert_nothing_comes_of_it

STOPS = botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("StopReason").enum
SCORES = {"t": "tool", "s": [90, 5, 40]}
NESTED = b"[" * 5_000 + b"]" * 5_000
ENORMOUS = 1_000_000


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


@pytest.mark.parametrize("role", ["reranker", "writer", "encoder"])
def test_a_truncated_reply_is_unusable(server, bench, role):
    whole = whole_replies(bench)[role]
    for at in range(0, len(whole), 7):
        for act in (Cut(whole, at), Raw(whole[:at])):
            server.play = lambda exchange, act=act: act
            failed = {"reranker": bench.rerank, "writer": bench.describe, "encoder": bench.encode}[role]()
            assert type(failed) is DependencyFailed


WRONG: list[Any] = [
    [], None, "x", {}, {"message": "no"}, {"output": []}, {"output": {}}, {"output": {"message": None}},
    {"output": {"message": {"role": "assistant", "content": {"a": 1}}}},
    *(response(block) for block in (None, [[]], {"unknown": 1}, {"text": ["a"]}, {"toolUse": []})),
    *(response({"toolUse": use}) for use in ({"name": 5}, {"name": "judge"}, {"input": {}})),
    *(calling(arguments) for arguments in (None, "x", [1, 2, 3], {"s": {}}, {"s": [[1]] * 3})),
    {**converse_reply([]), "stopReason": []},
    {**response({"text": "no"}), "usage": {"inputTokens": "many"}, "metrics": "x", "trace": []},
]  # fmt: skip
"""One for each level of a reply, and each kind of JSON there."""


@pytest.mark.parametrize("reply", WRONG, ids=lambda reply: json.dumps(reply)[:60])
def test_json_of_another_shape_gives_no_scores_profile_or_vector(server, bench, reply):
    played(server, written(reply))
    assert_nothing_comes_of_it(bench, (DependencyFailed, ReplyUnusable))


NOT_JSON = {
    "nested": b'{"output":' + NESTED + b"}",
    "not UTF-8": written(calling({})).replace(b'"t"', b'"\xe9"'),
    "two replies": written(calling(SCORES)) * 2,
    "enormous": b"x" * ENORMOUS,
    "enormous number": b"1" * ENORMOUS,
}


@pytest.mark.parametrize("content", NOT_JSON.values(), ids=list(NOT_JSON))
def test_content_that_is_no_reply_is_a_failed_dependency(server, bench, content):
    played(server, content)
    assert_nothing_comes_of_it(bench)


@pytest.mark.parametrize("depth", [900, 50_000])
def test_arguments_nested_to_any_depth_are_unusable(server, bench, depth):
    inner = b"[" * depth + b"]" * depth
    for name in ("judge", "describe"):
        played(server, written(tool_reply(name, {**FIVE, "summary": "HERE", "s": "HERE"})).replace(b'"HERE"', inner))
        assert_nothing_comes_of_it(bench, (DependencyFailed, ReplyUnusable))
    played(server, written(converse_reply([{"text": '{"s":' + inner.decode() + "}"}])))
    assert_nothing_comes_of_it(bench, (DependencyFailed, ReplyUnusable))


def test_an_enormous_reply_with_a_valid_tool_call_is_used_and_enormous_values_are_not(server, bench):
    padding = {"text": "x" * ENORMOUS}
    played(server, written(response(padding, *calling(SCORES)["output"]["message"]["content"])))
    assert bench.rerank().scores == (0.9, 0.05, 0.4)
    played(server, written(calling({"t": "tool", "s": [1] * (ENORMOUS // 2)})))
    assert 0 < len(bench.rerank().void) < 300
    played(server, written(tool_reply("describe", FIVE | {"summary": "x" * ENORMOUS})))
    failed = bench.describe()
    assert type(failed) is ReplyUnusable
    assert len(str(failed)) < 300
    played(server, written(tool_reply("describe", FIVE | {"keywords": ["x"] * (ENORMOUS // 4)})))
    assert bench.describe().enrichment.keywords == ("x",)


@pytest.mark.parametrize("stop", [*STOPS, "a_reason_of_tomorrow"])
def test_every_stop_reason_gives_a_result_or_drops_the_signal_and_keeps_the_raw_profile(server, bench, stop):
    refused = {"content_filtered", "guardrail_intervened"}
    useless = {"max_tokens", "model_context_window_exceeded", "malformed_model_output", "malformed_tool_use"} | refused
    server.play = lambda exchange: Answer(tool_reply(exchange, SCORES, stop=stop), loose=True)
    result = bench.rerank()
    assert isinstance(result, RerankResult)
    assert result.scores == (() if stop in refused else (0.9, 0.05, 0.4))
    assert result.void == (f"the model refused ({stop})" if stop in refused else "")
    server.play = lambda exchange: Answer(tool_reply(exchange, FIVE, stop=stop), loose=True)
    assert type(bench.describe()) is (ReplyUnusable if stop in useless else Written)
    server.play = lambda exchange: Answer(converse_reply([], stop=stop), loose=True)
    assert bench.rerank().void


@pytest.mark.parametrize("usage", [None, {"inputTokens": -5, "outputTokens": None}, {"x": 10**400}])
def test_an_invalid_usage_counts_as_zero_and_keeps_the_scores(server, bench, usage):
    played(server, written({**calling(SCORES, stop="a_reason_of_tomorrow"), "usage": usage}))
    result = bench.rerank()
    assert result.scores == (0.9, 0.05, 0.4)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (0, 0)


ONE = [1.0] + [0.0] * (DIMENSION - 1)
NO_VECTORS: dict[str, Any] = {
    "none": {}, "text": {"embedding": "x"}, "a list": ONE, "one too few": {"embedding": ONE[:-1]},
    "zero": {"embedding": [-0.0] * DIMENSION}, "too large to have a length": {"embedding": [1e200] * DIMENSION},
    **{
        f"{type(component).__name__} {component!r:.5} inside": {"embedding": [component, *ONE[1:]]}
        for component in (float("nan"), float("inf"), True, None, "1.0", 10**400)
    },
}  # fmt: skip


@pytest.mark.parametrize("answer", NO_VECTORS.values(), ids=list(NO_VECTORS))
def test_an_unusable_vector_is_a_failed_dependency(server, bench, answer):
    played(server, written(answer))
    failed = bench.encode()
    assert type(failed) is DependencyFailed
    assert "amazon.titan-embed-text-v2:0" in str(failed)
    assert len(str(failed)) < 300
