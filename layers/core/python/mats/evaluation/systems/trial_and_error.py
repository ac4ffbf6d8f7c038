"""Trial&Err: a model lists and tries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mats.domain.capability import Id
from mats.domain.fence import encode_json, visible
from mats.domain.prompt import fill_template
from mats.domain.registration import Registration
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import SystemAnswer
from mats.evaluation.systems.chat_model import ANY, FREE, ChatModel
from mats.evaluation.systems.conversation import Conversation, NoPick, alphabetical, parse_int, prompt, results_of

PAGE = 20
"""Capabilities of a page: ours."""
DESCRIPTION_CHARS = 80
"""Characters of each description: ours."""
ROUNDS = 6
"""Turns of the model: ours. The paper names a budget but not its size; its 1,875 tokens in and 29 out are few turns."""
_MAX_TOKENS = 200


class TrialAndError:
    """A model pages through the registry in alphabetical order and tries candidates, within a budget of turns.

    The paper says: "LLM iteratively lists and tries", a round budget, scored on its final `try`, below the rate of
    guessing when it never commits. Ours: page and budget; a try only says whether the capability exists, since nothing
    is invoked here and the registry must not reveal whether it is the right one; the final try is the last of one that
    exists; the model may stop by a text. It must call a tool in its first turn only.
    """

    def __init__(self, registrations: Sequence[Registration], chat: ChatModel) -> None:
        text = prompt("trial-and-err")
        self._prompt = replace(text, system=fill_template(text.system, {"rounds": str(ROUNDS)}))
        self._chat, ordered = chat, alphabetical(registrations)
        self._pages = [ordered[start : start + PAGE] for start in range(0, len(ordered), PAGE)]
        self._ids = frozenset(registration.id for registration in ordered)

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        """The final try; none if the model ended without one, a failure if the budget or the model did."""
        conversation = Conversation.about(query, self._chat, self._prompt, "list", max_tokens=_MAX_TOKENS)
        session = _TrialSession(self._pages, self._ids)
        return conversation.answer(lambda: self._converse(conversation, session), retrieved=session.listed_ids)

    def _converse(self, conversation: Conversation, session: "_TrialSession") -> Id | None:
        for round in range(ROUNDS):
            turn = conversation.next_turn(FREE if round else ANY)
            if not turn.calls:
                return session.final_try
            conversation.add(results=results_of(turn, session.call))
        if session.final_try is None:
            raise NoPick(f"no try within {ROUNDS} turns")
        return session.final_try


@dataclass
class _TrialSession:
    pages: Sequence[Sequence[Registration]]
    ids: frozenset[Id]
    listed_ids: list[Id] = field(default_factory=list)
    final_try: Id | None = None

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "list":
            return self._list(parse_int(arguments.get("page")))
        return self._try(arguments.get("id")) if name == "try" else "There is no such tool: call list or try."

    def _list(self, number: int | None) -> str:
        if number is None or not 0 < number <= len(self.pages):
            return f"There are pages 1 to {len(self.pages)}."
        page = self.pages[number - 1]
        self.listed_ids += [registration.id for registration in page if registration.id not in self.listed_ids]
        return "\n".join([f"<page number={number} of={len(self.pages)}>", *map(_row, page), "</page>"])

    def _try(self, id: object) -> str:
        named = Id(id.strip()) if isinstance(id, str) else None
        if named is None or named not in self.ids:
            return "There is no such capability."
        self.final_try = named
        return "It exists."


def _row(registration: Registration) -> str:
    return encode_json({"id": registration.id, "does": visible(registration.description)[:DESCRIPTION_CHARS]})
