"""Trial&Err: a model lists and tries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mats.domain.capability import Id
from mats.domain.fence import encoded, visible
from mats.domain.prompt import filled
from mats.domain.registration import Registration
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import Answer
from mats.evaluation.systems.conversation import (
    Conversation,
    fault_of,
    fenced,
    prompt,
    refusal,
    results_of,
    tool,
    whole,
)
from mats.evaluation.systems.listing import alphabetical
from mats.ports import ANY, FREE, Chat

PAGE = 20
"""Capabilities of a page: ours."""
DESCRIBED = 80
"""Characters of each description: ours."""
ROUNDS = 6
"""Turns of the model: ours. The paper names a budget but not its size; its 1,875 tokens in and 29 out are few turns."""
_MAX_TOKENS = 200


class TrialAndError:
    """A model pages through the registry in alphabetical order and tries candidates, within a budget of turns.

    The paper says: "LLM iteratively lists and tries", a round budget, scored on its final `try`, below the rate of
    guessing when it never commits. Ours: page and budget; a try only says whether there is such a capability, since
    nothing is ever invoked here and the registry must not tell that it is the right one; the final try is the last of
    one that exists; the model may stop by saying so. It must call a tool in its first turn only.
    """

    def __init__(self, registrations: Sequence[Registration], chat: Chat, *, rounds: int = ROUNDS) -> None:
        """Let these be listed and tried."""
        self._chat, self._prompt, self._rounds = chat, prompt("trial-and-err"), rounds
        ordered = alphabetical(registrations)
        self._pages = [ordered[start : start + PAGE] for start in range(0, len(ordered), PAGE)]
        self._ids = frozenset(registration.id for registration in ordered)

    def __call__(self, query: JudgedQuery) -> Answer:
        """Its final try; none if it ended without one, a failure if the budget or the model did."""
        tools = [tool(self._prompt, "list"), tool(self._prompt)]
        system = filled(self._prompt.system, {"rounds": str(self._rounds)})
        talk = Conversation(chat=self._chat, system=system, tools=tools, max_tokens=_MAX_TOKENS)
        talk.tell(filled(self._prompt.request, {"query": fenced(query.text)}))
        desk = _Desk(self._pages, self._ids)
        failed = fault_of(lambda: self._talked(talk, desk))
        return talk.answer(None if failed else desk.tried, retrieved=desk.listed, failed=failed)

    def _talked(self, talk: Conversation, desk: "_Desk") -> str:
        """Let it list and try until it stops; what went wrong, if anything did."""
        for round in range(self._rounds):
            turn = talk.listen(FREE if round else ANY)
            if not turn.calls:
                return refusal(turn)
            talk.tell(results=results_of(turn, desk.heard))
        return "" if desk.tried else f"no try within {self._rounds} turns"


@dataclass
class _Desk:
    """Answers the calls of one conversation."""

    pages: Sequence[Sequence[Registration]]
    ids: frozenset[Id]
    listed: list[Id] = field(default_factory=list)
    tried: Id | None = None

    def heard(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The result of a call."""
        if name == "list":
            return self._list(whole(arguments.get("page")))
        return self._try(arguments.get("id")) if name == "try" else "There is no such tool: call list or try."

    def _list(self, number: int | None) -> str:
        if number is None or not 0 < number <= len(self.pages):
            return f"There are pages 1 to {len(self.pages)}."
        page = self.pages[number - 1]
        self.listed += [registration.id for registration in page if registration.id not in self.listed]
        return "\n".join([f"<page number={number} of={len(self.pages)}>", *map(_row, page), "</page>"])

    def _try(self, id: object) -> str:
        named = Id(id.strip()) if isinstance(id, str) else None
        if named is None or named not in self.ids:
            return "There is no such capability."
        self.tried = named
        return "It exists."


def _row(registration: Registration) -> str:
    return encoded({"id": registration.id, "does": visible(registration.description)[:DESCRIBED]})
