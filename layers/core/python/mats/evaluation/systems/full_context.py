"""Full-Ctx: the whole registry in one prompt."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from mats.domain.capability import Id
from mats.domain.prompt import filled
from mats.domain.registration import Registration
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import Answer
from mats.evaluation.systems.conversation import Conversation, fault_of, fenced, prompt, refusal, tool, whole
from mats.evaluation.systems.listing import alphabetical, line
from mats.ports import Chat

BUDGET = 480_000
"""Characters of the list: the paper's "480k character budget, alphabetic truncation when exceeded"."""
_MAX_TOKENS = 64
"""Ours; the paper's picks take 5 to 10."""


class FullContext:
    """The registry in alphabetical order, one capability a line, cut at a budget; a model picks one line.

    The paper gives budget and order. Ours: lines are whole, so the first that does not fit ends the list; lines are
    numbered and a number is what the model answers, because names repeat in a registry of many owners (the numbers and
    the quotes count against the budget). A name is taken, too, if exactly one line has it. Line 0 or null is no answer.
    """

    def __init__(self, registrations: Sequence[Registration], chat: Chat, *, budget: int = BUDGET) -> None:
        """Show as many of these as fit into a budget of characters."""
        self._chat, self._prompt = chat, prompt("full-ctx")
        ordered = alphabetical(registrations)
        lines = _within([line(number, each) for number, each in enumerate(ordered, start=1)], budget)
        self.shown: tuple[Id, ...] = tuple(each.id for each in ordered[: len(lines)])
        self._names = [each.name for each in ordered[: len(lines)]]
        self._unseen = len(ordered) - len(lines)
        self._registry = filled(self._prompt.parts["registry"], {"lines": "\n".join(lines)})

    def __call__(self, query: JudgedQuery) -> Answer:
        """The one pick; an answer that is none of the lines says so."""
        talk = Conversation(
            chat=self._chat, system=self._prompt.system, tools=[tool(self._prompt)], max_tokens=_MAX_TOKENS
        )
        talk.tell(self._registry, filled(self._prompt.request, {"query": fenced(query.text)}))
        picked: list[Id] = []
        failed = fault_of(lambda: self._talked(talk, picked))
        return talk.answer(picked[0] if picked else None, retrieved=self.shown, failed=failed, unseen=self._unseen)

    def _talked(self, talk: Conversation, picked: list[Id]) -> str:
        """Let it pick; what went wrong, if anything did."""
        turn = talk.listen("pick")
        given = next((call.arguments for call in turn.calls if call.tool == "pick"), None)
        if not isinstance(given, dict):
            return refusal(turn) or "it did not pick"
        id, fault = self._read(given)
        picked += [] if id is None else [id]
        return fault

    def _read(self, given: dict[str, object]) -> tuple[Id | None, str]:
        """What a pick means, and what is wrong with it."""
        said = given.get("line")
        if said is None and "line" in given:
            return None, ""
        number = self._by_name.get(said) if isinstance(said, str) and said in self._by_name else whole(said)
        if number == 0:
            return None, ""
        if number is None or not 0 < number <= len(self.shown):
            return None, "it picked what is not in the list"
        return self.shown[number - 1], ""

    @cached_property
    def _by_name(self) -> dict[str, int]:
        """The line of every name that one line has, and no number is."""
        lines = {name: number for number, name in enumerate(self._names, start=1)}
        bearers = Counter(self._names)
        return {name: n for name, n in lines.items() if whole(name) is None and bearers[name] == 1}


def _within(lines: Sequence[str], budget: int) -> list[str]:
    """The first lines that fit, a line break each."""
    kept, left = [], budget
    for each in lines:
        left -= len(each) + 1
        if left < 0:
            break
        kept.append(each)
    return kept
