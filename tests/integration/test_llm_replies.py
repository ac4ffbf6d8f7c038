"""What writer and reranker make of replies, whichever service runs the model: the same for every one of them.

Replies are written as Converse replies, and sent in the shape of each service.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from mats.adapters.chat_completions.client import ChatCompletions
from mats.adapters.llm import LlmReranker, LlmWriter
from mats.bootstrap import models as bootstrap
from mats.domain.errors import ReplyUnusable
from mats.domain.profile.profile import Profile
from mats.domain.prompts.usage import Prices
from mats.settings import Settings
from tests.aws.bedrock import BedrockServer, converse_reply, tool_reply
from tests.aws.model_server import Answer, ModelServer
from tests.bedrock.conftest import aws_settings, models_of
from tests.builders import a_profile, a_registration
from tests.integration.bedrock_workbench import FIVE
from tests.servers.chat_completions import MODEL, ChatServer, chat_reply, way_of

SERVICES = ["bedrock", "tool", "schema", "json", "text"]  # Bedrock, and chat completions by each way to JSON


@dataclass(frozen=True)
class Llm:
    """Both roles on one stand-in."""

    server: ModelServer
    writer: LlmWriter
    reranker: LlmReranker

    @property
    def is_bedrock(self) -> bool:
        return isinstance(self.server, BedrockServer)

    @property
    def calls_tools(self) -> bool:
        return self.is_bedrock or "tool" in getattr(self.server, "takes", ())

    def replies(self, *replies: Any) -> None:
        """The model's next replies, one after another."""
        waiting = iter(replies)

        def play(exchange: Any) -> Answer:
            reply = next(waiting)
            return Answer(reply if self.is_bedrock else chat_reply(reply, way_of(exchange.body)))

        self.server.play = play

    def text_of(self, exchange: Any) -> str:
        """What the user's message says."""
        [message] = [message for message in exchange.body["messages"] if message["role"] == "user"]
        content = message["content"]
        return content if isinstance(content, str) else "\n\n".join(block["text"] for block in content)


@pytest.fixture(scope="module", params=SERVICES)
def running(request: pytest.FixtureRequest) -> Iterator[Llm]:
    if request.param == "bedrock":
        with BedrockServer() as server, aws_settings(server.client_environment()):
            models = models_of(Settings(bedrock=True))
            yield Llm(server, models.writer, models.reranker)
        return
    with ChatServer(takes=[request.param, "text"]) as server:
        made = ChatCompletions(Prices({}), url=server.address, key="", output=None, rerank_ms=5_000, concurrency=2)
        llm = Llm(
            server, made.writer(MODEL, bootstrap.prompt("enrich")), made.reranker(MODEL, bootstrap.prompt("rerank"))
        )
        assert llm.reranker.rerank("x", several(3)).scores  # finds out what the server takes
        yield llm


@pytest.fixture
def llm(running: Llm) -> Llm:
    running.server.play = None
    running.server.exchanges.clear()
    running.server.rejected.clear()
    return running


def several(count: int) -> list[Profile]:
    return [a_profile(name=f"tool-{n}", description=f"does word{n}") for n in range(count)]


UNUSABLE = {
    "cut off": (tool_reply("describe", FIVE, stop="max_tokens"), "it was cut off"),
    "malformed": (converse_reply([{"text": '{"summa'}], stop="malformed_model_output"), "breaks the form"),
    "refused": (converse_reply([{"text": "Sorry."}], stop="content_filtered"), "refused (content_filtered)"),
    "wrong tool": (tool_reply("search", FIVE), "it calls another tool"),
    "missing field": (tool_reply("describe", {"summary": FIVE["summary"]}), "at least positive_examples"),
    "words": (converse_reply([{"text": "It gives money back, I think."}], stop="end_turn"), "not an object"),
}
SAYABLE = pytest.mark.parametrize(
    ("running", "reply", "error"),
    [
        *(pytest.param("bedrock", *UNUSABLE[name], id=f"bedrock-{name}") for name in UNUSABLE),
        *(pytest.param(service, *UNUSABLE["missing field"], id=service) for service in SERVICES[1:]),
    ],
    indirect=["running"],
)
"""Each kind of fault on Bedrock, and one of them on each other service; the parsers have tests of their own."""


@SAYABLE
def test_an_unusable_reply_gets_one_retry_that_names_the_error(llm, reply, error):
    llm.replies(reply, tool_reply("describe", FIVE))
    written = llm.writer.describe(a_registration())
    first, second = llm.server.exchanges
    assert written.enrichment.summary == FIVE["summary"]
    assert [error in note for note in written.notes] == [True]
    assert written.usage.input_tokens == 200
    request, repeated = llm.text_of(first), llm.text_of(second)
    assert repeated.startswith(request)
    repair = repeated.removeprefix(request)
    assert error in repair
    assert not any(text in repair for text in ("Sorry", "I think", "money back"))


@SAYABLE
def test_two_unusable_replies_are_one_error_with_both_faults(llm, reply, error):
    repeated = "it calls another tool" if llm.calls_tools else "not an object"
    llm.replies(reply, tool_reply("other", FIVE) if llm.calls_tools else converse_reply([{"text": "No."}]))
    with pytest.raises(ReplyUnusable) as caught:
        llm.writer.describe(a_registration())
    assert error in str(caught.value)
    assert repeated in str(caught.value)
    assert len(llm.server.exchanges) == 2


def test_a_json_object_in_text_counts_like_a_tool_call(llm):
    llm.replies(converse_reply([{"text": f"```json\n{json.dumps(FIVE)}\n```"}]))
    assert llm.writer.describe(a_registration()).enrichment.summary == FIVE["summary"]


def test_complete_scores_of_a_truncated_reply_count(llm):
    llm.replies(converse_reply([{"text": '{"t": "tool", "s": [90, 40, 7'}], stop="max_tokens"))
    result = llm.reranker.rerank("x", several(3))
    assert (result.scores, result.cut_off, result.intent) == ((0.9, 0.4), True, "tool")
