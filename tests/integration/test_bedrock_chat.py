"""A conversation with tools over Converse, and replies that are kept, against a service as strict as the real one."""

from collections.abc import Mapping
from typing import Any

import pytest

from mats import bootstrap
from mats.adapters.bedrock.chat import BedrockChat
from mats.adapters.bedrock.models import Bedrock
from mats.adapters.bedrock.rehearsal import Rehearsal
from mats.domain.errors import DependencyFailed, NotPermitted
from mats.ports import ANY, FREE, Kept, Told, Tool, ToolCall, Turn
from mats.settings import Settings
from tests.builders import a_profile, a_registration
from tests.servers.bedrock import Answer, Refuse, converse_reply, tool_reply

NOVA, CLAUDE = "amazon.nova-micro-v1:0", "us.anthropic.claude-sonnet-4-20250514-v1:0"
MISTRAL, QWEN = "mistral.mistral-large-3-675b-instruct", "qwen.qwen3-next-80b-a3b"
SEARCH = Tool(
    name="search", description="Search.",
    schema={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)  # fmt: skip
PICK = Tool(
    name="pick", description="Pick.",
    schema={"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
)  # fmt: skip
TOOLS = (SEARCH, PICK)


class MemoryReplies:
    """Keeps replies as long as it lives."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}

    def get(self, request: Mapping[str, Any]) -> Kept | None:
        return self.kept.get(repr(request))

    def keep(self, request: Mapping[str, Any], kept: Kept) -> None:
        self.kept.setdefault(repr(request), kept)


def bedrock(replies: MemoryReplies | None = None) -> Bedrock:
    return bootstrap.patient_bedrock(Settings(bedrock=True), replies)


def turn(chat: BedrockChat, *messages: Told | Turn, must_call: str = ANY) -> Turn:
    said = messages or (Told(texts=["find me a thing"]),)
    return chat.turn("You find things.", said, TOOLS, must_call=must_call, max_tokens=50)


def use(name: str, arguments: Any, id: str = "tooluse_1") -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id, "name": name, "input": arguments}}


def test_a_turn_is_one_call_at_temperature_0_with_all_its_tools(server):
    said = turn(bedrock().chat(NOVA))
    [exchange] = server.exchanges
    assert exchange.model == NOVA
    assert exchange.body["system"] == [{"text": "You find things."}]
    assert exchange.body["inferenceConfig"] == {"maxTokens": 50, "temperature": 0.0}
    assert exchange.body["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 1}}
    assert [t["toolSpec"]["name"] for t in exchange.body["toolConfig"]["tools"]] == ["search", "pick"]
    assert said.usage.input_tokens > 0
    assert said.usage.usd
    assert said.took_ms > 0
    assert not said.replayed


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
def test_each_family_is_made_to_call_as_far_as_it_can_be(server, model, must_call, choice):
    turn(bedrock().chat(model), must_call=must_call)
    [exchange] = server.exchanges
    assert exchange.body["toolConfig"].get("toolChoice") == choice


def test_what_was_said_goes_back_with_the_result_of_every_call(server):
    two = converse_reply([{"text": "Let me look."}, use("search", {"query": "a"}), use("search", {"query": "b"}, "t2")])
    replies = iter([two, tool_reply("pick", {"number": 1})])
    server.play = lambda exchange: Answer(next(replies))
    chat = bedrock().chat(NOVA)
    asked = Told(texts=["the registry", "find me a thing"])
    first = turn(chat, asked)
    assert first.calls == (
        ToolCall("tooluse_1", "search", {"query": "a"}), ToolCall("t2", "search", {"query": "b"}),
    )  # fmt: skip
    second = turn(
        chat, asked, first, Told(texts=["Hurry."], results=[(c.id, f"result of {c.id}") for c in first.calls])
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
def test_whatever_a_model_said_the_service_takes_it_back(server, content):
    chat, asked = bedrock().chat(NOVA), Told(texts=["hello"])
    server.play = _first(converse_reply(content))
    said = turn(chat, asked)
    ids = [call.id for call in said.calls]
    assert len(set(ids)) == len(ids)
    assert all(isinstance(call.arguments, dict) for call in said.calls)
    turn(chat, asked, said, Told(texts=[] if ids else ["Go on."], results=[(id, "") for id in ids]))
    assert server.rejected == []


def _first(reply: Any) -> Any:
    """That reply, then the model's own."""
    waiting = [reply]
    return lambda exchange: Answer(waiting.pop(), loose=True) if waiting else None


def test_a_refusal_is_a_turn_that_says_so(server):
    server.play = _first(converse_reply([{"text": "no"}], stop="guardrail_intervened"))
    said = turn(bedrock().chat(NOVA))
    assert (said.stop, said.text, said.calls) == ("guardrail_intervened", "no", ())


def test_what_the_service_refuses_is_an_error_of_ours(server):
    server.play = lambda exchange: Refuse("AccessDeniedException", "not for you")
    with pytest.raises(NotPermitted, match="not for you"):
        turn(bedrock().chat(NOVA))
    server.play = lambda exchange: Refuse("ValidationException", "too long")
    with pytest.raises(DependencyFailed, match="too long"):
        turn(bedrock().chat(NOVA))


def test_the_patient_ask_again_where_the_service_is_busy(server):
    server.play = lambda exchange: Refuse("ThrottlingException") if len(server.exchanges) < 3 else None
    assert turn(bedrock().chat(NOVA)).usage.input_tokens > 0
    assert len(server.exchanges) == 3


class TestReplies:
    def test_a_request_is_made_once_and_its_reply_costs_nothing_the_second_time(self, server):
        replies = MemoryReplies()
        fresh, again = bedrock(replies), bedrock(replies)
        first, second = turn(fresh.chat(NOVA)), turn(again.chat(NOVA))
        assert len(server.exchanges) == 1
        assert (first.replayed, second.replayed) == (False, True)
        assert (second.text, second.calls, second.stop) == (first.text, first.calls, first.stop)
        assert (second.usage, second.took_ms) == (first.usage, first.took_ms)
        assert fresh.meter.totals() == {NOVA: first.usage}
        assert again.meter.totals() == {}

    def test_another_model_another_text_and_another_limit_are_other_requests(self, server):
        made = bedrock(MemoryReplies())
        turn(made.chat(NOVA))
        turn(made.chat(CLAUDE))
        turn(made.chat(NOVA), Told(texts=["something else"]))
        turn(made.chat(NOVA), must_call="pick")
        assert len(server.exchanges) == 4

    def test_reranker_and_writer_go_through_the_same_replies(self, server):
        replies, profiles = MemoryReplies(), [a_profile(), a_profile(name="other")]
        for expected in (None, float):
            made = bedrock(replies)
            result = made.reranker(NOVA, bootstrap.prompt("rerank")).rerank("refund", profiles)
            written = made.writer(NOVA, bootstrap.prompt("enrich")).describe(a_registration())
            assert result.scores
            assert type(result.replayed_ms) is (expected or type(None))
            assert written.usage.input_tokens > 0
        assert len(server.exchanges) == len(replies.kept) == 2

    @pytest.mark.parametrize("code", ["ValidationException", "AccessDeniedException"])
    def test_a_failure_is_not_kept(self, server, code):
        replies = MemoryReplies()
        server.play = lambda exchange: Refuse(code)
        with pytest.raises(DependencyFailed):
            turn(bedrock(replies).chat(NOVA))
        server.play = None
        assert replies.kept == {}
        assert not turn(bedrock(replies).chat(NOVA)).replayed

    def test_a_reply_that_broke_off_is_not_kept(self, server):
        replies = MemoryReplies()
        server.play = lambda exchange: Answer({"usage": {"inputTokens": 1}}, loose=True)
        with pytest.raises(DependencyFailed):
            turn(bedrock(replies).chat(NOVA))
        assert replies.kept == {}

    def test_the_service_itself_keeps_none(self, server):
        made = bootstrap.bedrock(Settings(bedrock=True))
        assert made is not None
        reranker = made.reranker(NOVA, bootstrap.prompt("rerank"))
        assert [reranker.rerank("refund", [a_profile()]).replayed_ms for _ in range(2)] == [None, None]
        assert len(server.exchanges) == 2


class TestRehearsal:
    def test_it_makes_the_very_requests_that_would_be_sent(self, server):
        seen: list[Mapping[str, Any]] = []

        def answering(request: Mapping[str, Any]) -> Mapping[str, Any]:
            seen.append(request)
            return tool_reply("pick", {"number": 1})

        rehearsed, real = bootstrap.rehearsal(answering), bedrock()
        assert isinstance(rehearsed, Rehearsal)
        for made in (rehearsed, real):
            turn(made.chat(NOVA))
            made.reranker(NOVA, bootstrap.prompt("rerank")).rerank("refund", [a_profile()])
        assert [{k: v for k, v in request.items() if k != "modelId"} for request in seen] == [
            exchange.body for exchange in server.exchanges
        ]
