"""Writer and reranker read the replies of any service that runs a model; the parsers have tests of their own."""

import json
from typing import Any

import pytest

from mats.adapters.llm import LlmWriter, ModelReply, Question, ToolCall
from mats.bootstrap import models as bootstrap
from mats.domain.errors import ReplyUnusable
from mats.domain.prompts.usage import Usage
from tests.builders import a_registration
from tests.integration.bedrock_workbench import FIVE


class Script:
    """A service that gives these replies, one after another, and keeps the questions."""

    def __init__(self, *replies: ModelReply) -> None:
        self.replies, self.questions = list(replies), list[Question]()

    def __call__(self, question: Question) -> ModelReply:
        self.questions.append(question)
        return self.replies.pop(0)


def called(tool: str, arguments: Any, *, stop: str = "tool_use") -> ModelReply:
    return ModelReply(stop=stop, calls=(ToolCall("t", tool, arguments),), text="", usage=Usage(input_tokens=100))


def said(text: str, *, stop: str = "end_turn") -> ModelReply:
    return ModelReply(stop=stop, calls=(), text=text, usage=Usage(input_tokens=100))


def a_writer(*replies: ModelReply) -> LlmWriter:
    return LlmWriter(ask=Script(*replies), name="m", text=bootstrap.prompt("enrich"))


UNUSABLE = {
    "cut off": (called("describe", FIVE, stop="max_tokens"), "it was cut off"),
    "malformed": (said('{"summa', stop="malformed_model_output"), "breaks the form"),
    "refused": (said("Sorry.", stop="content_filtered"), "refused (content_filtered)"),
    "wrong tool": (called("search", FIVE), "it calls another tool"),
    "missing field": (called("describe", {"summary": FIVE["summary"]}), "at least positive_examples"),
    "words": (said("It gives money back, I think."), "not an object"),
}


@pytest.mark.parametrize(("reply", "error"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_reply_gets_one_retry_that_names_the_error_and_a_second_one_is_an_error_with_both(reply, error):
    writer = a_writer(reply, called("describe", FIVE))
    written = writer.describe(a_registration())
    assert written.enrichment.summary == FIVE["summary"]
    assert [error in note for note in written.notes] == [True]
    assert written.usage.input_tokens == 200
    first, second = (question.texts for question in writer.ask.questions)
    assert second[:1] == first
    [repair] = second[1:]
    assert error in repair
    assert not any(text in repair for text in ("Sorry", "I think", "money back"))
    writer = a_writer(reply, called("other", FIVE))
    with pytest.raises(ReplyUnusable) as caught:
        writer.describe(a_registration())
    assert error in str(caught.value)
    assert "it calls another tool" in str(caught.value)
    assert writer.ask.replies == []


@pytest.mark.parametrize(("end", "level"), [
    ('"risk": "ste', "unclear"), ('"risk"', "unclear"), ('"risk": "steers", "span": "', "unclear"),
    ('"risk": "steers", "span": "Gives money bac', "steers"),
    ('"risk": "steers", "span": "Gives money back\\', "steers"),
])  # fmt: skip
@pytest.mark.parametrize("reply", [called, lambda tool, text, stop: said(text, stop=stop)], ids=["tool", "text"])
def test_a_reply_that_is_cut_off_in_its_risk_keeps_the_fields(reply, end, level):
    writer = a_writer(reply("describe", f"{json.dumps(FIVE)[:-1]}, {end}", stop="max_tokens"))
    written = writer.describe(a_registration(description="Gives money back to customers."))
    assert (written.enrichment.summary, written.risk.level) == (FIVE["summary"], level)
