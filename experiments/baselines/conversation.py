"""One query's conversation between a baseline and a model, with its prompts, tools and cost."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.baselines.chat_model import ChatModel, Message, ModelTurn, ToolSpec, UserMessage
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, NotPermitted
from mats.domain.prompts.prompt import Prompt, fill_template
from mats.domain.prompts.usage import Usage
from mats.domain.text.fence import encode_json, visible
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import LONGEST_QUERY, SystemAnswer

_PROMPTS = Path(__file__).parent / "prompts"
_REFUSALS = ("content_filtered", "guardrail_intervened")
MOST_CALLS = 8  # Calls of a turn that get a result; only the first is made. More are dropped from the conversation.
ONE_CALL = "One call at a time: look at the results first."
BROKEN = "The reply was cut off or malformed: make one call, without other words."


def prompt(name: str) -> Prompt:
    """A prompt of `prompts/`; its `tool` is the one that ends a conversation."""
    return Prompt.parse((_PROMPTS / f"{name}.md").read_text("utf-8"))


def alphabetical(registrations: Sequence[Registration]) -> list[Registration]:
    """By name, case ignored; equal names by id."""
    return sorted(registrations, key=lambda r: (r.name.casefold(), r.id))


def list_line(number: int, registration: Registration, *, max_description: int | None = None) -> str:
    """A line of a listing: the number, then as a JSON string name and description, whitespace collapsed."""
    name, description = visible(registration.name), visible(registration.description)[:max_description]
    return f"{number} {encode_json(f'{name}: {description}' if description else name)}"


class NoPick(Exception):
    """A conversation ended without a valid pick; the message says why."""


class Conversation:
    """One query's conversation. Its cost so far is known also when the model fails."""

    def __init__(
        self,
        query: JudgedQuery,
        chat: ChatModel,
        text: Prompt,
        *tools: str,
        context: Sequence[str] = (),
        max_tokens: int,
    ) -> None:
        """`tools` are the sections of tools beside the prompt's own; the texts of `context` precede the request."""
        self.chat, self.system, self.max_tokens = chat, text.system, max_tokens
        more = [json.loads(text.parts[name].removeprefix("```json").removesuffix("```")) for name in tools]
        self.tools: Sequence[ToolSpec] = [*more, text.tool]
        self.messages: list[Message] = []
        self.turns: list[ModelTurn] = []
        self._harness_s = 0.0  # CPU time of this thread in calls of the model: the evaluation's own, not the system's
        fenced = encode_json(visible(query.text[:LONGEST_QUERY]))  # as JSON that cannot leave its fence
        self.add(*context, fill_template(text.request, {"query": fenced}))

    def add(self, *texts: str, results: Sequence[tuple[str, str]] = ()) -> None:
        self.messages.append(UserMessage(texts=texts, results=results))

    def next_turn(self, must_call: str) -> ModelTurn:
        """The model's reply to the conversation so far.

        Raises:
            DependencyFailed: it did not answer.
            NoPick: it refused.
        """
        began = time.thread_time()
        turn = self.chat.turn(self.system, self.messages, self.tools, must_call=must_call, max_tokens=self.max_tokens)
        self._harness_s += time.thread_time() - began
        turn = replace(turn, calls=turn.calls[:MOST_CALLS])
        self.messages.append(turn)
        self.turns.append(turn)
        if turn.stop in _REFUSALS and not turn.calls:
            raise NoPick(f"the model refused ({turn.stop})")
        return turn

    def turns_within(
        self,
        budget: int,
        must_call: Callable[[int], str],
        call_tool: Callable[[str, Mapping[str, Any]], str],
        *,
        without_call: str,
        last: str,
    ) -> Iterator[ModelTurn]:
        """Each turn within a budget; the next request has the results of its calls.

        Only the first call is made, so that every call can use the result of the one before; none of a broken turn is.
        `must_call` takes the number of turns left; `without_call` follows a turn without one, `last` the last but one.
        """
        for left in reversed(range(budget)):
            turn = self.next_turn(must_call(left))
            results = [BROKEN if turn.is_broken else ONE_CALL] * len(turn.calls)
            for call in () if turn.is_broken else turn.calls[:1]:
                results[0] = call_tool(call.tool, call.arguments if isinstance(call.arguments, dict) else {})
            yield turn
            texts = [] if turn.calls else [f"{BROKEN} {without_call}" if turn.is_broken else without_call]
            ids = (call.id for call in turn.calls)
            self.add(*texts, *([last] if left == 1 else ()), results=list(zip(ids, results, strict=True)))

    def answer(self, converse: Callable[[], Id | None], *, retrieved: Sequence[Id]) -> SystemAnswer:
        """The pick of `converse`, with the cost of the whole conversation; a failure if it raises NoPick.

        `total` is the time of the model's original calls and the CPU time of local work, such as searches: other
        queries that are asked at the same time do not add to it.

        Raises:
            NotPermitted: an operator has to act before any query can be answered.
        """
        picked, failed, began = None, "", time.thread_time()
        try:
            picked = converse()
        except NotPermitted:
            raise
        except (DependencyFailed, NoPick) as error:
            failed = str(error)
        local_s = max(0.0, time.thread_time() - began - self._harness_s)
        llm = sum(turn.took_ms for turn in self.turns)
        return SystemAnswer(
            ranked=() if picked is None else (picked,),
            retrieved=retrieved,
            usage=Usage.total(turn.usage for turn in self.turns),
            took_ms={"llm": llm, "total": llm + 1_000 * local_s} if self.turns else {},
            failed=failed,
            calls=len(self.turns),
            cached=sum(turn.cached for turn in self.turns),
        )


def parse_int(value: object) -> int | None:
    """An integer as models write it: also 3.0 and "3"; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value.strip()[:9])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None
