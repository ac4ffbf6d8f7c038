"""Search&Pick: a model with a search tool."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from experiments.baselines.chat_model import ANY, ChatModel
from experiments.baselines.conversation import (
    Conversation,
    NoPick,
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
from mats.evaluation.systems.base import LONGEST_QUERY, SystemAnswer
from mats.evaluation.systems.catalogue import PlainBm25, names_and_descriptions

PAGE = 15  # Results of a search: ours, the k of the paper's pipeline
DESCRIPTION_CHARS = 200  # Characters of each description: ours
ROUNDS = 4
"""Turns of the model, the pick included: ours. The paper's 3,141 tokens in and 48 out are two or three turns."""
MAX_TOKENS = 200
_WITHOUT_CALL, _LAST_TURN = "Call search or pick.", "Last turn: pick now."


class SearchAndPick:
    """A model searches with BM25 as often as it likes within a budget of turns, then picks one result it has seen.

    The paper's: "LLM with a search tool to narrow candidates before picking". Ours: the search engine, which is the
    system `bm25` with names split into words; the page; the budget, which the model is told; one call a turn; and that
    the last turn allows only a pick, by force where the model can be forced, else by a text. The paper's model may
    abstain there; ours by number 0 or null.
    """

    def __init__(self, registrations: Sequence[Registration], chat: ChatModel) -> None:
        text = prompt("search-and-pick")
        self._prompt = replace(text, system=fill_template(text.system, {"rounds": str(ROUNDS)}))
        self._chat, self._lock = chat, Lock()
        self._engine = PlainBm25(names_and_descriptions(registrations, splits_names=True))
        self._by_id = {registration.id: registration for registration in registrations}

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        """The pick; a failure if there is none within the budget, or the model failed."""
        conversation = Conversation.about(query, self._chat, self._prompt, "search", max_tokens=MAX_TOKENS)
        session = _SearchSession(self._search, self._by_id)
        return conversation.answer(lambda: self._converse(conversation, session), retrieved=session.results)

    def _search(self, text: str) -> list[Id]:
        with self._lock:  # its stemmer is not thread-safe
            return self._engine.search(text, PAGE)

    def _converse(self, conversation: Conversation, session: "_SearchSession") -> Id | None:
        for left in reversed(range(ROUNDS)):
            turn = conversation.next_turn(ANY if left else "pick")
            results = results_of(turn, session.call)
            if session.is_over:
                return session.picked
            conversation.add(*reminders(turn, left, without_call=_WITHOUT_CALL, last=_LAST_TURN), results=results)
        raise NoPick(f"no pick within {ROUNDS} turns")


@dataclass
class _SearchSession:
    search: Callable[[str], list[Id]]
    by_id: Mapping[Id, Registration]
    results: list[Id] = field(default_factory=list)
    """In the order of their first appearance; the number of each is its place."""
    picked: Id | None = None
    is_over: bool = False

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The result of a call."""
        if name == "search":
            return self._search(arguments.get("query"))
        return self._pick(arguments) if name == "pick" else "There is no such tool: call search or pick."

    def _search(self, text: object) -> str:
        if not isinstance(text, str) or not text.strip():
            return "A search needs a query: keywords as a string."
        ids = self.search(text[:LONGEST_QUERY])
        self.results += [id for id in ids if id not in self.results]
        rows = [list_line(self.results.index(id) + 1, self.by_id[id], max_description=DESCRIPTION_CHARS) for id in ids]
        return "<results>\n" + "\n".join(rows) + "\n</results>" if rows else "Nothing was found."

    def _pick(self, arguments: Mapping[str, Any]) -> str:
        number = parse_int(arguments.get("number"))
        if number == 0 or ("number" in arguments and arguments["number"] is None):
            self.is_over = True
            return "Nothing is picked."
        if number is None or not 0 < number <= len(self.results):
            return "No result has this number." if self.results else "There are no results yet: search first."
        self.picked, self.is_over = self.results[number - 1], True
        return "Picked."
