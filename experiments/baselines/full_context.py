"""Full-Ctx: the whole registry in one prompt."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from experiments.baselines.chat_model import ChatModel, ModelTurn
from experiments.baselines.conversation import Conversation, NoPick, alphabetical, list_line, parse_int, prompt
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.prompts.prompt import fill_template
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import SystemAnswer

BUDGET = 480_000  # Characters of the list: the paper's "480k character budget, alphabetic truncation when exceeded"
MAX_TOKENS = 64  # Ours; the paper's picks take 5 to 10
_BARE_NUMBER = re.compile(r"\W*(?:line\W*)?(\d{1,9})\W*", re.IGNORECASE)


class FullContext:
    """The registry in alphabetical order, one capability a line, truncated at a budget; a model picks one line.

    The paper's: budget and order. Ours: descriptions are whole, so that fewer lines fit than in the paper (2,420 of
    7,270 tools, against 3,255 of 7,278); lines are whole, so the first that does not fit ends the list; lines are
    numbered and the model answers with a number, because names repeat in a registry of many owners (the numbers and
    the quotes count against the budget). A name is accepted, too, if exactly one line has it, and a bare number in
    words, because not every model can be made to call a tool. Line 0 or null is no answer.
    """

    def __init__(self, registrations: Sequence[Registration], chat: ChatModel, *, budget: int = BUDGET) -> None:
        self._chat, self._prompt = chat, prompt("full-ctx")
        ordered = alphabetical(registrations)
        lines = [list_line(number, each) for number, each in enumerate(ordered, start=1)]
        ends = accumulate(len(line) + 1 for line in lines)  # with the line break
        lines = lines[: sum(end <= budget for end in ends)]
        self.listed_ids: tuple[Id, ...] = tuple(each.id for each in ordered[: len(lines)])
        names = [each.name for each in ordered[: len(lines)]]
        unique = {name for name, count in Counter(names).items() if count == 1 and parse_int(name) is None}
        self._line_of = {name: number for number, name in enumerate(names, start=1) if name in unique}
        self._registry = fill_template(self._prompt.parts["registry"], {"lines": "\n".join(lines)})

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        """The one pick; a pick that is not in the list is a failure."""
        conversation = Conversation(query, self._chat, self._prompt, context=[self._registry], max_tokens=MAX_TOKENS)
        return conversation.answer(lambda: self._pick(conversation.next_turn("pick")), retrieved=self.listed_ids)

    def _pick(self, turn: ModelTurn) -> Id | None:
        arguments = next((call.arguments for call in turn.calls if call.tool == "pick"), None)
        if not turn.calls and (bare := _BARE_NUMBER.fullmatch(turn.text)):
            arguments = {"line": bare[1]}
        if turn.is_broken or not isinstance(arguments, dict):
            raise NoPick(f"it did not pick ({turn.stop})" if turn.is_broken else "it did not pick")
        line = arguments.get("line")
        number = self._line_of[line] if isinstance(line, str) and line in self._line_of else parse_int(line)
        if number == 0 or (line is None and "line" in arguments):
            return None
        if number is None or not 0 < number <= len(self.listed_ids):
            raise NoPick("it picked what is not in the list")
        return self.listed_ids[number - 1]
