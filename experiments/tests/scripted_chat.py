"""A model that says what a test wrote for it, and what tests of baselines start from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.baselines.chat_model import Message, ModelTurn, ToolSpec, UserMessage
from mats.adapters.llm import ToolCall
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.prompts.usage import Usage
from mats.evaluation.data.datasets import JudgedQuery
from tests.builders import a_registration

Said = ModelTurn | Exception


def calls(*made: tuple[str, Any], **more: Any) -> ModelTurn:
    """A turn with these calls, of tool and arguments; 100 tokens in, 10 out, 5 ms."""
    return ModelTurn(
        calls=[ToolCall(f"call-{n}", name, arguments) for n, (name, arguments) in enumerate(made)],
        **{"usage": Usage(input_tokens=100, output_tokens=10, usd=0.01), "took_ms": 5.0, **more},
    )


def words(text: str, **more: Any) -> ModelTurn:
    """A turn without a call."""
    return ModelTurn(text=text, usage=Usage(input_tokens=100, output_tokens=10, usd=0.01), took_ms=5.0, **more)


@dataclass(frozen=True)
class Heard:
    """The input of the model for a turn."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    must_call: str

    @property
    def told(self) -> str:
        """The last it was told: texts and results."""
        last = self.messages[-1]
        assert isinstance(last, UserMessage)
        return "\n".join([*last.texts, *(text for _, text in last.results)])


@dataclass
class ScriptedChat:
    """One turn after the other; the last one again and again. What is callable is called with the turn's number."""

    script: Sequence[Said | Callable[[int], Said]]
    name: str = "scripted"
    heard: list[Heard] = field(default_factory=list)

    def turn(
        self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], *, must_call: str, max_tokens: int
    ) -> ModelTurn:
        assert max_tokens > 0
        _assert_every_call_has_its_result(messages)
        number = len(self.heard)
        self.heard.append(Heard(system, list(messages), tools, must_call))
        said = self.script[min(number, len(self.script) - 1)]
        said = said(number) if callable(said) else said
        if isinstance(said, Exception):
            raise said
        return said


def _assert_every_call_has_its_result(messages: Sequence[Message]) -> None:
    assert [isinstance(message, UserMessage) for message in messages] == [n % 2 == 0 for n in range(len(messages))]
    for said, told in zip(messages[1::2], messages[2::2], strict=True):
        assert [call.id for call in said.calls] == [id for id, _ in told.results]
        assert told.results or told.texts


def asked(text: str = "refund a card payment", *relevant: str) -> JudgedQuery:
    """A query."""
    return JudgedQuery("q", text, frozenset(map(Id, relevant)))


def registry(count: int, described: str = "does thing number {n}") -> list[Registration]:
    """Made-up capabilities `n/t000`, `n/t001`, …, in an order that is not alphabetical."""
    numbers = sorted(range(count), key=lambda n: (n % 3, n))
    return [a_registration(namespace="n", name=f"t{n:03}", description=described.format(n=n)) for n in numbers]
