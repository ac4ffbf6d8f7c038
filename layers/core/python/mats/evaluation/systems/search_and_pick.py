"""Search&Pick: a model with a search tool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from mats.domain.capability import Id
from mats.domain.prompt import filled
from mats.domain.registration import Registration
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import LONGEST_QUERY, Answer
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
from mats.evaluation.systems.listing import line
from mats.evaluation.systems.plain_bm25 import PlainBm25
from mats.ports import ANY, Chat

PAGE = 15
"""Results of a search: ours, the k of the paper's pipeline."""
DESCRIBED = 200
"""Characters of each description: ours."""
ROUNDS = 4
"""Turns of the model, the pick included: ours. The paper's 3,141 tokens in and 48 out are two or three turns."""
_MAX_TOKENS = 200


class SearchAndPick:
    """A model searches with plain BM25 as often as it likes within a budget of turns, then picks one result.

    The paper says: "LLM with a search tool to narrow candidates before picking". Ours: the search engine, the page, the
    budget, and that in the last turn a pick is the only thing left to do. Number 0 or null is no answer.
    """

    def __init__(self, registrations: Sequence[Registration], chat: Chat, *, rounds: int = ROUNDS) -> None:
        """Let these be searched."""
        self._chat, self._prompt, self._rounds = chat, prompt("search-and-pick"), rounds
        self._search = _OneAtATime(PlainBm25(registrations))
        self._by_id = {registration.id: registration for registration in registrations}

    def __call__(self, query: JudgedQuery) -> Answer:
        """What it picked; if it never did, or the model failed on the way, the answer says so."""
        tools = [tool(self._prompt, "search"), tool(self._prompt)]
        talk = Conversation(chat=self._chat, system=self._prompt.system, tools=tools, max_tokens=_MAX_TOKENS)
        talk.tell(filled(self._prompt.request, {"query": fenced(query.text)}))
        desk = _Desk(self._search, self._by_id)
        failed = fault_of(lambda: self._talked(talk, desk))
        return talk.answer(desk.picked, retrieved=desk.shown, failed=failed)

    def _talked(self, talk: Conversation, desk: "_Desk") -> str:
        """Let it search until it has picked; what went wrong, if anything did."""
        for left in range(self._rounds, 0, -1):
            turn = talk.listen(ANY if left > 1 else "pick")
            results = results_of(turn, desk.heard)
            if desk.ended:
                return ""
            if why := refusal(turn):
                return why
            talk.tell(*([] if results else ["Call search or pick."]), results=results)
        return f"no pick within {self._rounds} turns"


@dataclass(frozen=True)
class _OneAtATime:
    """Lets one thread search at a time: a stemmer cannot be shared."""

    plain: PlainBm25
    turn: Lock = field(default_factory=Lock)

    def search(self, text: str) -> list[Id]:
        """A page of ids."""
        with self.turn:
            return self.plain.search(text, PAGE)


@dataclass
class _Desk:
    """Answers the calls of one conversation."""

    engine: _OneAtATime
    by_id: Mapping[Id, Registration]
    shown: list[Id] = field(default_factory=list)
    """In the order in which they were first shown; the number of each is its place."""
    picked: Id | None = None
    ended: bool = False

    def heard(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The result of a call; after a pick nothing counts any more."""
        if self.ended:
            return "It is over."
        if name == "search":
            return self._searched(arguments.get("query"))
        return self._pick(arguments) if name == "pick" else "There is no such tool: call search or pick."

    def _searched(self, text: object) -> str:
        if not isinstance(text, str) or not text.strip():
            return "A search needs a query: keywords as a string."
        found = self.engine.search(text[:LONGEST_QUERY])
        self.shown += [id for id in found if id not in self.shown]
        rows = [line(self.shown.index(id) + 1, self.by_id[id], most=DESCRIBED) for id in found]
        return "<results>\n" + "\n".join(rows) + "\n</results>" if rows else "Nothing was found."

    def _pick(self, arguments: Mapping[str, Any]) -> str:
        number = whole(arguments.get("number"))
        if number == 0 or ("number" in arguments and arguments["number"] is None):
            self.ended = True
            return "Nothing is picked."
        if number is None or not 0 < number <= len(self.shown):
            return "No result has this number." if self.shown else "There are no results yet: search first."
        self.picked, self.ended = self.shown[number - 1], True
        return "Picked."
