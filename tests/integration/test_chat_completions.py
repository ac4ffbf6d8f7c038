"""Models behind an address of chat completions: the forms servers take, their errors, and the whole pipeline."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from mats.adapters.chat_completions.client import ChatCompletions
from mats.adapters.chat_completions.form import Output
from mats.bootstrap import models as bootstrap
from mats.domain.errors import DependencyFailed, ModelRefused, NotPermitted, ReplyUnusable
from mats.domain.prompts.usage import Prices
from mats.ports import RerankResult
from mats.settings import Settings, SettingsInvalid
from tests.aws.bedrock import tool_reply
from tests.aws.model_server import Act, Answer, Cut, Raw, Refuse, Stall
from tests.integration.bedrock_workbench import (
    HASTE_S,
    PATIENCE_S,
    QUERY,
    REFUND,
    SHOWN,
    outcome_of,
)
from tests.servers.chat_completions import MODEL, WAYS, ChatServer, chat_reply, text_reply, way_of

KEY = "sk-local-0123456789"
JUDGED = chat_reply(tool_reply("judge", {"s": [90, 5, 40]}))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def models(server: ChatServer, *, key: str = "", output: Output | None = None, patience_s: float = PATIENCE_S) -> Any:
    return ChatCompletions(
        Prices({}), url=f"{server.address}/", key=key, output=output, rerank_ms=patience_s * 1000, concurrency=2
    )


def rerank(made: ChatCompletions) -> Any:
    reranker = made.reranker(MODEL, bootstrap.prompt("rerank"))
    return outcome_of(lambda: reranker.rerank(QUERY.query, SHOWN))


def describe(made: ChatCompletions) -> Any:
    writer = made.writer(MODEL, bootstrap.prompt("enrich"))
    return outcome_of(lambda: writer.describe(REFUND))


@pytest.mark.parametrize("way", WAYS)
def test_what_a_server_takes_is_found_out_once_and_shared_by_both_roles(way):
    with ChatServer(takes=WAYS[WAYS.index(way) :]) as server:
        made = models(server)
        assert len(rerank(made).scores) == 3
        tried = len(server.rejected)
        assert tried == WAYS.index(way)
        assert describe(made).enrichment.summary
        assert len(rerank(made).scores) == 3
        assert len(server.rejected) == tried
        assert {way_of(exchange.body) for exchange in server.exchanges} == {way}


def test_a_server_that_answers_a_forced_tool_with_text_is_asked_by_schema_from_then_on(server):
    server.play = lambda exchange: Answer(text_reply('{"s": [1, 2, 3]}')) if "tools" in exchange.body else None
    made = models(server)
    assert rerank(made).scores == (0.01, 0.02, 0.03)
    assert len(rerank(made).scores) == 3
    assert [way_of(exchange.body) for exchange in server.exchanges] == ["tool", "schema"]


def test_one_text_among_tool_calls_changes_nothing(server):
    made = models(server)
    rerank(made)
    server.play = lambda exchange: Answer(text_reply("no"))
    rerank(made)
    server.play = None
    rerank(made)
    assert {way_of(exchange.body) for exchange in server.exchanges} == {"tool"}


@pytest.mark.parametrize("way", WAYS)
def test_a_repair_is_asked_for_after_the_request(way):
    with ChatServer(lambda exchange: Answer(text_reply("no")), takes=[way, "text"]) as server:
        failed = describe(models(server, output=Output(way)))
        first, second = (exchange.body["messages"][-1]["content"] for exchange in server.exchanges)
    assert isinstance(failed, ReplyUnusable)
    assert second.startswith(f"{first}\n\n")


def test_a_fixed_output_is_the_only_one_tried():
    with ChatServer(takes=["tool", "text"]) as server:
        failed = rerank(models(server, output=Output.SCHEMA))
        assert type(failed) is ModelRefused
        assert "MATS_LLM_OUTPUT" in str(failed)
        assert len(server.rejected) == 1
        assert len(rerank(models(server, output=Output.TOOL)).scores) == 3


def test_newer_names_of_parameters_are_used_where_a_server_asks_for_them():
    seen: list[dict[str, Any]] = []

    class Newer(ChatServer):
        def read(self, method: str, path: str, headers: Any, content: bytes) -> Any:
            body = json.loads(content)
            seen.append(body)
            if "max_tokens" in body:
                body = {"refused": "'max_tokens' is not supported here. Use 'max_completion_tokens' instead."}
            elif "temperature" in body:
                body = {"refused": "'temperature' does not support 0 with this model."}
            return "chat.completions", MODEL, body

    def play(exchange: Any) -> Act:
        said = exchange.body.get("refused")
        return Refuse("unsupported_parameter", said) if said else Answer(JUDGED)

    with Newer(play) as server:
        made = models(server)
        assert rerank(made).scores == (0.9, 0.05, 0.4)
        assert rerank(made).scores
    assert len(seen) == 4
    assert seen[-1].keys() & {"max_tokens", "max_completion_tokens", "temperature"} == {"max_completion_tokens"}


def test_the_schema_names_the_exact_number_of_scores(server):
    rerank(models(server, output=Output.SCHEMA))
    schema = server.exchanges[0].body["response_format"]["json_schema"]["schema"]
    assert (schema["properties"]["s"]["minItems"], schema["properties"]["s"]["maxItems"]) == (3, 3)


def test_untrusted_text_is_fenced_in_the_same_words_as_on_bedrock(server):
    rerank(models(server))
    system, user = server.exchanges[0].body["messages"]
    assert system == {"role": "system", "content": bootstrap.prompt("rerank").system}
    assert user["content"].startswith("<request>")
    assert user["content"].endswith("</candidates>\nAnswer with one whole number per candidate, in order, 3 in all.")


ERRORS = {
    "refused key": (Refuse("invalid_api_key", "no", 401), NotPermitted, "MATS_LLM_KEY"),
    "wrong path": (Raw(b"<html>Not Found</html>", 404), NotPermitted, "MATS_LLM_URL"),
    "unknown model": (Refuse("model_not_found", "The model `x` does not exist", 404), ModelRefused, "MATS_LLM_MODEL"),
    "redirect": (Raw(b"", 307, headers={"Location": "https://elsewhere.example/"}), NotPermitted, "final address"),
    "too long": (
        Refuse("exceed_context_size_error", "request (9000 tokens) exceeds the available context size (4096)", 400),
        DependencyFailed,
        "longer context",
    ),
    "busy": (Refuse("rate_limit_exceeded", "slow down", 429), DependencyFailed, "busy"),
    "loading": (Refuse("unavailable_error", "Loading model", 503), DependencyFailed, "Loading model"),
    "error in the body": (
        Raw(b'{"error": {"message": "upstream is down", "code": 502}}'),
        DependencyFailed,
        "upstream",
    ),
    "page under 200": (Raw(b"<html>Sign in</html>"), DependencyFailed, "not one of chat completions"),
    "truncated": (Cut(b'{"choices": [{"message"', 10), DependencyFailed, "did not answer"),
    "reset": (Cut(b'{"choices"', 4, "reset"), DependencyFailed, "did not answer"),
}


@pytest.mark.parametrize(("act", "kind", "part"), ERRORS.values(), ids=list(ERRORS))
def test_every_error_says_what_to_do(server, act, kind, part):
    server.play = lambda exchange: act
    made = models(server, key=KEY)
    for failed in (rerank(made), describe(made)):
        assert type(failed) is kind
        assert part in str(failed)
        assert server.address in str(failed)
        assert KEY not in str(failed)
    assert len(server.exchanges) == 2


@pytest.mark.parametrize("act", [Stall(math.inf, before_headers=True), Stall(math.inf, b'{"ch')])
def test_a_reply_that_stalls_ends_with_its_timeout(server, act):
    server.play = lambda exchange: act
    assert isinstance(rerank(models(server, patience_s=HASTE_S)), DependencyFailed)


def test_a_server_that_is_gone_is_an_error_that_names_its_setting_and_it_is_used_again_when_it_is_back():
    with ChatServer() as server:
        made = models(server)
        assert len(rerank(made).scores) == 3
    failed = rerank(made)
    assert "start the model server or correct MATS_LLM_URL" in str(failed)
    assert server.address in made.warning()
    with server:
        assert len(rerank(made).scores) == 3
        assert made.warning() == ""


def test_the_key_is_sent_to_the_server_only_and_no_error_repeats_it():
    with ChatServer(key=KEY) as server:
        made = models(server, key=KEY)
        assert isinstance(rerank(made), RerankResult)
        assert made.warning() == ""
        for wrong, part in (("sk-wrong-key", "refuses the key"), ("", "asks for a key")):
            made = models(server, key=wrong)
            failed, warning = rerank(made), made.warning()
            assert type(failed) is NotPermitted
            for said in (str(failed), warning):
                assert f"{part}: set MATS_LLM_KEY to a valid one" in said
                assert not wrong or wrong not in said


def test_a_redirect_gets_no_request_with_the_key(server):
    with ChatServer(key=KEY) as elsewhere:
        server.play = lambda exchange: Raw(b"", 307, headers={"Location": f"{elsewhere.address}/chat/completions"})
        assert isinstance(rerank(models(server, key=KEY)), NotPermitted)
        assert elsewhere.paths == []


def test_usage_has_the_servers_tokens_without_a_price(server):
    made = models(server)
    usage = rerank(made).usage
    assert usage.input_tokens > 0
    assert usage.usd is None
    assert made.meter.totals()[MODEL].input_tokens == usage.input_tokens


@pytest.mark.parametrize("said", [None, "many", -1, True, {"prompt_tokens": "x"}, []])
def test_an_invalid_usage_counts_as_zero_and_keeps_the_scores(server, said):
    server.play = lambda exchange: Answer(JUDGED | {"usage": said}, loose=True)
    result = rerank(models(server))
    assert (len(result.scores), result.usage.input_tokens) == (3, 0)


def test_a_reply_that_reached_the_token_limit_is_cut_off(server):
    server.play = lambda exchange: Answer(text_reply('{"s": [90, 40, 7', stop="max_tokens"))
    result = rerank(models(server, output=Output.JSON))
    assert (result.scores, result.cut_off) == ((0.9, 0.4), True)


def test_thoughts_before_the_reply_are_left_out(server):
    thought = "<think>They ask for [1, 2, 3] {\n</think>\n"
    server.play = lambda exchange: Answer(text_reply(thought + '{"s": [90, 5, 40]}'))
    assert rerank(models(server)).scores == (0.9, 0.05, 0.4)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"llm_url": "http://10.0.0.5:8080/v1"}, "MATS_LLM_HTTP"),
        ({"llm_url": "https://user:pw@models.example/v1"}, "without user"),
        ({"llm_url": "https://models.example/v1?x=1"}, "query"),
        ({"llm_url": "ftp://models.example"}, "https"),
        ({"llm_model": ""}, "MATS_LLM_MODEL"),
        ({"bedrock": True}, "exclude"),
    ],
)
def test_settings_that_cannot_be_used_are_named(changes, part):
    with pytest.raises(SettingsInvalid, match=part):
        Settings(**{"llm_url": "https://models.example/v1", "llm_model": "m", **changes})


def test_plain_http_to_another_machine_is_a_choice():
    assert Settings(llm_url="http://10.0.0.5:8080/v1", llm_model="m", llm_http=True).llm_http


def test_no_representation_has_the_key(server):
    made = models(server, key=KEY)
    for one in (Settings(llm_key=KEY), made, made._online):
        assert KEY not in repr(one)
