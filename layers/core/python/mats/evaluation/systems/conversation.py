"""How a baseline talks with a model: the prompts of `prompts/`, and a conversation that keeps account."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed, NotPermitted
from mats.domain.fence import encoded, visible
from mats.domain.prompt import Prompt
from mats.domain.usage import Usage
from mats.evaluation.systems.base import LONGEST_QUERY, Answer
from mats.ports import Chat, Message, Told, Tool, Turn

_PROMPTS = Path(__file__).parent / "prompts"
_REFUSALS = ("content_filtered", "guardrail_intervened")


def prompt(name: str) -> Prompt:
    """A prompt of `evaluation/prompts/`; its `tool` is the one that ends a conversation."""
    return Prompt.parse((_PROMPTS / f"{name}.md").read_text("utf-8"))


def tool(text: Prompt, part: str = "") -> Tool:
    """The tool of a prompt, or the one that another of its sections describes."""
    spec: Mapping[str, Any] = text.tool
    if part:
        spec = json.loads(text.parts[part].removeprefix("```json").removesuffix("```"))
    return Tool(name=spec["name"], description=spec["description"], schema=spec["schema"])


def fenced(query: str) -> str:
    """A query as a model gets to see it, no longer than the API takes it: JSON that cannot leave its fence."""
    return encoded(visible(query[:LONGEST_QUERY]))


@dataclass(kw_only=True)
class Conversation:
    """One query's conversation. What it cost is known at any time, also when the model fails in the middle."""

    chat: Chat
    system: str
    tools: Sequence[Tool]
    max_tokens: int
    said: list[Message] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    def tell(self, *texts: str, results: Sequence[tuple[str, str]] = ()) -> None:
        """Say something to the model."""
        self.said.append(Told(texts=texts, results=results))

    def listen(self, must_call: str) -> Turn:
        """What it says next.

        Raises:
            DependencyFailed: it did not answer.
        """
        turn = self.chat.turn(self.system, self.said, self.tools, must_call=must_call, max_tokens=self.max_tokens)
        self.said.append(turn)
        self.turns.append(turn)
        return turn

    def answer(self, picked: Id | None, *, retrieved: Sequence[Id] = (), failed: str = "", unseen: int = 0) -> Answer:
        """The answer that comes of it, with all it cost; times and tokens are those of the original calls."""
        return Answer(
            ranked=() if picked is None else (picked,),
            retrieved=retrieved,
            usage=Usage.total(turn.usage for turn in self.turns),
            took_ms={"llm": sum(turn.took_ms for turn in self.turns)} if self.turns else {},
            failed=failed,
            unseen=unseen,
            calls=len(self.turns),
            replayed=sum(turn.replayed for turn in self.turns),
        )


def fault_of(talked: Callable[[], str]) -> str:
    """What a conversation says went wrong, or why the model failed in the middle of it; empty if all went well.

    Raises:
        NotPermitted: nobody will get an answer before an operator has mended something.
    """
    try:
        return talked()
    except NotPermitted:
        raise
    except DependencyFailed as error:
        return str(error)


def refusal(turn: Turn) -> str:
    """Why a model would not answer; empty if it did."""
    return f"the model refused ({turn.stop})" if turn.stop in _REFUSALS and not turn.calls else ""


def results_of(turn: Turn, heard: Callable[[str, Mapping[str, Any]], str]) -> list[tuple[str, str]]:
    """The result of every call of a turn, in order, as `heard` makes it of tool and arguments."""
    return [
        (call.id, heard(call.tool, call.arguments if isinstance(call.arguments, Mapping) else {}))
        for call in turn.calls
    ]


def whole(value: object) -> int | None:
    """A whole number as models write them: also 3.0 and "3"; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value.strip()[:9])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None
