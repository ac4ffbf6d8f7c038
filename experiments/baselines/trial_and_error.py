"""Trial&Err: a model lists and tries."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.baselines.chat_model import ANY, FREE, ChatModel, ModelTurn
from experiments.baselines.conversation import (
    Conversation,
    NoPick,
    alphabetical,
    list_line,
    parse_int,
    prompt,
    reminders,
    results_of,
)
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.prompts.prompt import fill_template
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import SystemAnswer

PAGE = 10  # Capabilities of a page: ours
DESCRIPTION_CHARS = 80  # Characters of each description: ours
ROUNDS = 6
"""Turns of the model: ours. The paper names a budget but not its size; its 1,875 tokens in and 29 out are few turns."""
MAX_TOKENS = 200
_WITHOUT_CALL, _LAST_TURN = "Call list or try, or say done.", "Last turn: try what fits best, or say done."


class TrialAndError:
    """A model pages through the registry in alphabetical order and tries candidates, within a budget of turns.

    The paper's: "LLM iteratively lists and tries", a round budget, scored on its final `try`, below the rate of
    guessing when it never commits. Ours: the page and the budget, which the model is told; one call a turn; any page
    may be opened; a try only says whether the capability exists, since nothing is invoked here and the registry must
    not reveal whether it is the right one; the final try is the last of one that exists; the model may stop by the word
    done, and must call a tool in its first turn only.

    Rows show number, name and the beginning of the description, as in the other baselines, never a namespace. In pages
    of ten, six turns reach a small part of a large registry. The paper reaches Match@1 0.62 on 859 skills with 1,125
    tokens, so its list may take a filter that it does not describe.
    """

    def __init__(self, registrations: Sequence[Registration], chat: ChatModel) -> None:
        text = prompt("trial-and-err")
        self._prompt = replace(text, system=fill_template(text.system, {"rounds": str(ROUNDS)}))
        self._chat, self._ordered = chat, alphabetical(registrations)
        counts = Counter(registration.name for registration in self._ordered)
        self._by_name = {r.name: r.id for r in self._ordered if counts[r.name] == 1 and parse_int(r.name) is None}
        self._pages = pages(self._ordered)

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        """The final try; none if the model ended without one, a failure if the budget or the model did."""
        conversation = Conversation.about(query, self._chat, self._prompt, "list", max_tokens=MAX_TOKENS)
        session = _TrialSession(self._ordered, self._pages, self._by_name)
        return conversation.answer(lambda: self._converse(conversation, session), retrieved=session.listed_ids)

    def _converse(self, conversation: Conversation, session: "_TrialSession") -> Id | None:
        for left in reversed(range(ROUNDS)):
            turn = conversation.next_turn(FREE if conversation.turns else ANY)
            if _says_done(turn):
                return session.final_try
            results = results_of(turn, session.call)
            conversation.add(*reminders(turn, left, without_call=_WITHOUT_CALL, last=_LAST_TURN), results=results)
        if session.final_try is None:
            raise NoPick(f"no try within {ROUNDS} turns")
        return session.final_try


def pages(ordered: Sequence[Registration]) -> list[list[str]]:
    """The rows of each page; their numbers are unique over all pages, from 1."""
    rows = [list_line(n, each, max_description=DESCRIPTION_CHARS) for n, each in enumerate(ordered, start=1)]
    return [rows[start : start + PAGE] for start in range(0, len(rows), PAGE)]


def _says_done(turn: ModelTurn) -> bool:
    """True if a whole reply without a call begins or ends with the word: "done", "I am done.", not "not done"."""
    words = re.findall(r"\w+", turn.text.casefold())
    said = words[:1] == ["done"] or (words[-1:] == ["done"] and words[-2:-1] != ["not"])
    return said and not turn.calls and not turn.is_broken


@dataclass
class _TrialSession:
    ordered: Sequence[Registration]
    pages: Sequence[Sequence[str]]
    by_name: Mapping[str, Id]  # Those whose name no other has
    listed_ids: list[Id] = field(default_factory=list)
    final_try: Id | None = None

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "list":
            return self._list(parse_int(arguments.get("page")))
        return self._try(arguments.get("number")) if name == "try" else "There is no such tool: call list or try."

    def _list(self, number: int | None) -> str:
        if number is None or not 0 < number <= len(self.pages):
            return f"There are pages 1 to {len(self.pages)}."
        start = (number - 1) * PAGE
        ids = [registration.id for registration in self.ordered[start : start + PAGE]]
        self.listed_ids += [id for id in ids if id not in self.listed_ids]
        return "\n".join([f"<page number={number} of={len(self.pages)}>", *self.pages[number - 1], "</page>"])

    def _try(self, value: object) -> str:
        """A row by its number, once its page was listed, or a capability by a name that no other has."""
        named = self.by_name.get(value.strip()) if isinstance(value, str) else None
        if named is None:
            number = parse_int(value)
            if number is None or not 0 < number <= len(self.ordered):
                return "There is no such capability."
            named = self.ordered[number - 1].id
            if named not in self.listed_ids:
                return "This row was not listed yet: list its page first."
        self.final_try = named
        return "It exists."
