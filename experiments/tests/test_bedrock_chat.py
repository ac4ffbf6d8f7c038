"""Conversations with tools over Converse, and the reply cache, against a service as strict as the real one."""

from pathlib import Path
from typing import Any

import pytest

from experiments.baselines.chat_model import ANY, FREE, ChatModel, ModelTurn, UserMessage
from mats.adapters.llm import ToolCall
from mats.bootstrap import models as bootstrap
from mats.evaluation.systems.models import CallLog, Models, ReplyCache
from mats.settings import Settings
from tests.aws.bedrock import Answer, Refuse, converse_reply, tool_reply
from tests.builders import a_profile, a_registration

NOVA, CLAUDE = "amazon.nova-micro-v1:0", "us.anthropic.claude-sonnet-4-20250514-v1:0"
MISTRAL, QWEN = "mistral.mistral-large-3-675b-instruct", "qwen.qwen3-next-80b-a3b"
TOOLS = [
    {"name": name, "description": "Does.", "schema": {"type": "object", "properties": {key: {"type": kind}}}}
    for name, key, kind in (("search", "query", "string"), ("pick", "number", "integer"))
]


@pytest.fixture
def workbench(tmp_path: Path) -> "Workbench":
    return Workbench(tmp_path)


class Workbench:
    """Models of one process; several share a cache by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models = Models(Settings(bedrock=True, cache=folder))
        self.cache = ReplyCache(folder / "model-replies.db")

    def chat(self, model: str) -> ChatModel:
        return ChatModel(models=Models(Settings(bedrock=True, cache=self.folder, rerank_model=model)))

    @property
    def responses(self) -> int:
        """How many are stored."""
        return self.cache._connection.execute("SELECT count(*) FROM replies").fetchone()[0]


def turn(chat: ChatModel, *messages: UserMessage | ModelTurn, must_call: str = ANY) -> ModelTurn:
    said = messages or (UserMessage(texts=["find me a thing"]),)
    return chat.turn("You find things.", said, TOOLS, must_call=must_call, max_tokens=50)


def use(name: str, arguments: Any, id: str = "tooluse_1") -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id, "name": name, "input": arguments}}


def test_a_turn_is_one_call_at_temperature_0_with_all_its_tools(server, workbench):
    said = turn(workbench.chat(NOVA))
    [exchange] = server.exchanges
    assert exchange.model == NOVA
    assert exchange.body["system"] == [{"text": "You find things."}]
    assert exchange.body["inferenceConfig"] == {"maxTokens": 50, "temperature": 0.0}
    assert exchange.body["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 1}}
    assert [t["toolSpec"]["name"] for t in exchange.body["toolConfig"]["tools"]] == ["search", "pick"]
    assert said.usage.input_tokens > 0
    assert said.usage.usd
    assert said.took_ms > 0
    assert not said.cached


@pytest.mark.parametrize(
    ("model", "must_call", "choice"),
    [
        (NOVA, "pick", {"tool": {"name": "pick"}}),
        (NOVA, ANY, {"any": {}}),
        (NOVA, FREE, None),
        (CLAUDE, "pick", {"tool": {"name": "pick"}}),
        (CLAUDE, ANY, {"any": {}}),
        (MISTRAL, "pick", {"any": {}}),
        (MISTRAL, ANY, {"any": {}}),
        (QWEN, "pick", None),
        (QWEN, ANY, None),
    ],
)
def test_each_family_gets_its_strictest_tool_choice(server, workbench, model, must_call, choice):
    turn(workbench.chat(model), must_call=must_call)
    [exchange] = server.exchanges
    assert exchange.body["toolConfig"].get("toolChoice") == choice


def test_the_next_request_holds_the_turn_and_the_result_of_every_call(server, workbench):
    two = converse_reply([{"text": "Let me look."}, use("search", {"query": "a"}), use("search", {"query": "b"}, "t2")])
    replies = iter([two, tool_reply("pick", {"number": 1})])
    server.play = lambda exchange: Answer(next(replies))
    chat = workbench.chat(NOVA)
    asked = UserMessage(texts=["the registry", "find me a thing"])
    first = turn(chat, asked)
    assert first.calls == (
        ToolCall("tooluse_1", "search", {"query": "a"}), ToolCall("t2", "search", {"query": "b"}),
    )  # fmt: skip
    second = turn(
        chat, asked, first, UserMessage(texts=["Hurry."], results=[(c.id, f"result of {c.id}") for c in first.calls])
    )
    assert [(call.tool, call.arguments) for call in second.calls] == [("pick", {"number": 1})]
    first_said, assistant, told = server.exchanges[1].body["messages"]
    assert first_said["content"] == [{"text": "the registry"}, {"text": "find me a thing"}]
    assert assistant == {"role": "assistant", "content": two["output"]["message"]["content"]}
    assert told["content"] == [
        {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "result of tooluse_1"}]}},
        {"toolResult": {"toolUseId": "t2", "content": [{"text": "result of t2"}]}},
        {"text": "Hurry."},
    ]


@pytest.mark.parametrize(
    "content",
    [
        [],
        [{"text": " "}],
        [{"toolUse": {"toolUseId": "", "name": "search", "input": {}}}],
        [{"toolUse": {"toolUseId": "same", "name": "no such name!", "input": {}}}] * 2,
        [{"toolUse": {"toolUseId": "x" * 99, "name": "", "input": "text"}}],
        [{"toolUse": {"toolUseId": "x", "name": "search", "input": [1]}}],
        [{"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "so"}],
    ],
)
def test_any_turn_is_accepted_in_the_next_request(server, workbench, content):
    chat, asked = workbench.chat(NOVA), UserMessage(texts=["hello"])
    server.play = _first(converse_reply(content))
    said = turn(chat, asked)
    ids = [call.id for call in said.calls]
    assert len(set(ids)) == len(ids)
    assert all(isinstance(call.arguments, dict) for call in said.calls)
    turn(chat, asked, said, UserMessage(texts=[] if ids else ["Go on."], results=[(id, "") for id in ids]))
    assert server.rejected == []


def _first(reply: Any) -> Any:
    """That reply, then the model's own."""
    waiting = [reply]
    return lambda exchange: Answer(waiting.pop(), loose=True) if waiting else None


def test_a_refusal_is_a_turn_with_its_stop_reason(server, workbench):
    server.play = _first(converse_reply([{"text": "no"}], stop="guardrail_intervened"))
    said = turn(workbench.chat(NOVA))
    assert (said.stop, said.text, said.calls) == ("guardrail_intervened", "no", ())


def test_throttled_calls_are_retried(server, workbench):
    server.play = lambda exchange: Refuse("ThrottlingException") if len(server.exchanges) < 3 else None
    assert turn(workbench.chat(NOVA)).usage.input_tokens > 0
    assert len(server.exchanges) == 3


class TestReplyCache:
    def test_a_request_is_sent_once_and_the_cached_reply_is_free(self, server, tmp_path):
        fresh, again = Workbench(tmp_path).chat(NOVA), Workbench(tmp_path).chat(NOVA)
        first, second = turn(fresh), turn(again)
        assert len(server.exchanges) == 1
        assert (first.cached, second.cached) == (False, True)
        assert (second.text, second.calls, second.stop) == (first.text, first.calls, first.stop)
        assert (second.usage, second.took_ms) == (first.usage, first.took_ms)
        assert fresh.models._bedrock.meter.totals() == {NOVA: first.usage}
        assert again.models._bedrock.meter.totals() == {}

    def test_another_model_text_or_limit_is_another_request(self, server, workbench):
        turn(workbench.chat(NOVA))
        turn(workbench.chat(CLAUDE))
        turn(workbench.chat(NOVA), UserMessage(texts=["something else"]))
        turn(workbench.chat(NOVA), must_call="pick")
        assert len(server.exchanges) == 4

    def test_reranker_and_writer_share_the_cache(self, server, tmp_path):
        profiles = [a_profile(), a_profile(name="other")]
        for cached in (False, True):
            workbench = Workbench(tmp_path)
            calls = CallLog()
            assert workbench.models.reranker(calls).rerank("refund", profiles).scores
            assert [call.cached for call in calls.made] == [cached]
            assert workbench.models.writer.describe(a_registration()).usage.input_tokens > 0
        assert len(server.exchanges) == workbench.responses == 2

    def test_labels_do_not_make_another_request(self, server, workbench):
        profiles = [a_profile()]
        for number in range(2):
            workbench.models.reranker().rerank("refund", profiles, {"query_id": str(number)})
        assert (len(server.exchanges), workbench.responses) == (1, 1)

    def test_the_service_itself_caches_none(self, server):
        bedrock = bootstrap.bedrock(Settings(bedrock=True))
        assert bedrock is not None
        reranker = bedrock.reranker(NOVA, bootstrap.prompt("rerank"))
        for _ in range(2):
            reranker.rerank("refund", [a_profile()])
        assert len(server.exchanges) == 2
