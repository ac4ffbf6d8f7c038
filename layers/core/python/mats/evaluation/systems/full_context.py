"""Full-Ctx: the whole registry in one prompt."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from mats.domain.capability import Id
from mats.domain.prompt import fill_template
from mats.domain.registration import Registration
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import SystemAnswer
from mats.evaluation.systems.chat_model import ChatModel, ModelTurn
from mats.evaluation.systems.conversation import Conversation, NoPick, alphabetical, list_line, parse_int, prompt

BUDGET = 480_000
"""Characters of the list: the paper's "480k character budget, alphabetic truncation when exceeded"."""
_MAX_TOKENS = 64
"""Ours; the paper's picks take 5 to 10."""


class FullContext:
    """The registry in alphabetical order, one capability a line, truncated at a budget; a model picks one line.

    The paper gives budget and order. Ours: lines are whole, so the first that does not fit ends the list; lines are
    numbered and the model answers with a number, because names repeat in a registry of many owners (the numbers and
    the quotes count against the budget). A name is accepted, too, if exactly one line has it. Line 0 or null is no
    answer.
    """

    def __init__(self, registrations: Sequence[Registration], chat: ChatModel, *, budget: int = BUDGET) -> None:
        self._chat, self._prompt = chat, prompt("full-ctx")
        ordered = alphabetical(registrations)
        lines = [list_line(number, each) for number, each in enumerate(ordered, start=1)]
        ends = accumulate(len(line) + 1 for line in lines)  # with the line break
        lines = lines[: sum(end <= budget for end in ends)]
        self.listed_ids: tuple[Id, ...] = tuple(each.id for each in ordered[: len(lines)])
        self._names = [each.name for each in ordered[: len(lines)]]
        self._registry = fill_template(self._prompt.parts["registry"], {"lines": "\n".join(lines)})

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        """The one pick; a pick that is not in the list is a failure."""
        conversation = Conversation.about(
            query, self._chat, self._prompt, context=[self._registry], max_tokens=_MAX_TOKENS
        )
        return conversation.answer(lambda: self._pick(conversation.next_turn("pick")), retrieved=self.listed_ids)

    def _pick(self, turn: ModelTurn) -> Id | None:
        arguments = next((call.arguments for call in turn.calls if call.tool == "pick"), None)
        if not isinstance(arguments, dict):
            raise NoPick("it did not pick")
        line = arguments.get("line")
        number = self._by_name.get(line) if isinstance(line, str) and line in self._by_name else parse_int(line)
        if number == 0 or (line is None and "line" in arguments):
            return None
        if number is None or not 0 < number <= len(self.listed_ids):
            raise NoPick("it picked what is not in the list")
        return self.listed_ids[number - 1]

    @cached_property
    def _by_name(self) -> dict[str, int]:
        """The line of every name that is unique and not a number."""
        lines = {name: number for number, name in enumerate(self._names, start=1)}
        counts = Counter(self._names)
        return {name: n for name, n in lines.items() if parse_int(name) is None and counts[name] == 1}
