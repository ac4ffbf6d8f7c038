"""The baselines in which a model uses two tools within a budget of turns: Search&Pick and Trial&Err."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from experiments.baselines.chat_model import ANY, FREE, ChatModel, ModelTurn
from experiments.baselines.conversation import Conversation, NoPick, alphabetical, list_line, parse_int, prompt
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.prompts.prompt import Prompt, fill_template
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import LONGEST_QUERY, SystemAnswer
from mats.evaluation.systems.catalogue import PlainBm25, names_and_descriptions

MAX_TOKENS = 200
FOUND, FOUND_CHARS = 15, 200  # Results of a search, and characters of each description: the k of the paper's pipeline
LISTED, LISTED_CHARS = 10, 80  # Capabilities of a page, and characters of each description: ours
SEARCH_ROUNDS = 4
"""Turns of the model, the pick included: ours. The paper's 3,141 tokens in and 48 out are two or three turns."""
TRY_ROUNDS = 6
"""Turns of the model: ours. The paper names a budget but not its size; its 1,875 tokens in and 29 out are few turns."""


def _prompt(name: str, rounds: int) -> Prompt:
    text = prompt(name)
    return replace(text, system=fill_template(text.system, {"rounds": str(rounds)}))


class SearchAndPick:
    """A model searches with BM25 as often as it likes within a budget of turns, then picks one result it has seen.

    The paper's: "LLM with a search tool to narrow candidates before picking". Ours: the search engine, which is the
    system `bm25` with names split into words; the page; the budget, which the model is told; one call a turn; and that
    the last turn allows only a pick, by force where the model can be forced, else by a text. The paper's model may
    abstain there; ours by number 0 or null.
    """

    def __init__(self, registrations: Sequence[Registration], chat: ChatModel) -> None:
        self._prompt, self._chat, self._lock = _prompt("search-and-pick", SEARCH_ROUNDS), chat, Lock()
        self._engine = PlainBm25(names_and_descriptions(registrations, splits_names=True))
        self.by_id = {registration.id: registration for registration in registrations}

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        """The pick; a failure if there is none within the budget, or the model failed."""
        conversation = Conversation(query, self._chat, self._prompt, "search", max_tokens=MAX_TOKENS)
        session = _SearchSession(self)

        def converse() -> Id | None:
            turns = conversation.turns_within(
                SEARCH_ROUNDS,
                lambda left: ANY if left else "pick",
                session.call,
                without_call="Call search or pick.",
                last="Last turn: pick now.",
            )
            if any(session.is_over for _ in turns):
                return session.picked
            raise NoPick(f"no pick within {SEARCH_ROUNDS} turns")

        return conversation.answer(converse, retrieved=session.results)

    def search(self, text: str) -> list[Id]:
        with self._lock:  # its stemmer is not thread-safe
            return self._engine.search(text, FOUND)


@dataclass
class _SearchSession:
    system: SearchAndPick
    results: list[Id] = field(default_factory=list)
    """In the order of their first appearance; the number of each is its place."""
    picked: Id | None = None
    is_over: bool = False

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "search":
            return self._search(arguments.get("query"))
        return self._pick(arguments) if name == "pick" else "There is no such tool: call search or pick."

    def _search(self, text: object) -> str:
        if not isinstance(text, str) or not text.strip():
            return "A search needs a query: keywords as a string."
        ids = self.system.search(text[:LONGEST_QUERY])
        self.results += [id for id in ids if id not in self.results]
        rows = [list_line(self.results.index(id) + 1, self.system.by_id[id], max_description=FOUND_CHARS) for id in ids]
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
        self._prompt, self._chat = _prompt("trial-and-err", TRY_ROUNDS), chat
        self.ordered = alphabetical(registrations)
        counts = Counter(registration.name for registration in self.ordered)
        self.by_name = {r.name: r.id for r in self.ordered if counts[r.name] == 1 and parse_int(r.name) is None}
        self.rows = [list_line(n, r, max_description=LISTED_CHARS) for n, r in enumerate(self.ordered, start=1)]

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        """The final try; none if the model ended without one, a failure if the budget or the model did."""
        conversation = Conversation(query, self._chat, self._prompt, "list", max_tokens=MAX_TOKENS)
        session = _TrialSession(self)

        def converse() -> Id | None:
            turns = conversation.turns_within(
                TRY_ROUNDS,
                lambda _: FREE if conversation.turns else ANY,
                session.call,
                without_call="Call list or try, or say done.",
                last="Last turn: try what fits best, or say done.",
            )
            if any(map(_says_done, turns)) or session.final_try:
                return session.final_try
            raise NoPick(f"no try within {TRY_ROUNDS} turns")

        return conversation.answer(converse, retrieved=session.listed_ids)


def _says_done(turn: ModelTurn) -> bool:
    """True if a whole reply without a call begins or ends with the word: "done", "I am done.", not "not done"."""
    words = re.findall(r"\w+", turn.text.casefold())
    said = words[:1] == ["done"] or (words[-1:] == ["done"] and words[-2:-1] != ["not"])
    return said and not turn.calls and not turn.is_broken


@dataclass
class _TrialSession:
    system: TrialAndError
    listed_ids: list[Id] = field(default_factory=list)
    final_try: Id | None = None

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "list":
            return self._list(parse_int(arguments.get("page")))
        return self._try(arguments.get("number")) if name == "try" else "There is no such tool: call list or try."

    def _list(self, number: int | None) -> str:
        pages = -(-len(self.system.rows) // LISTED)
        if number is None or not 0 < number <= pages:
            return f"There are pages 1 to {pages}."
        page = slice((number - 1) * LISTED, number * LISTED)
        self.listed_ids += [each.id for each in self.system.ordered[page] if each.id not in self.listed_ids]
        return "\n".join([f"<page number={number} of={pages}>", *self.system.rows[page], "</page>"])

    def _try(self, value: object) -> str:
        """A row by its number, once its page was listed, or a capability by a name that no other has."""
        named = self.system.by_name.get(value.strip()) if isinstance(value, str) else None
        if named is None:
            number = parse_int(value)
            if number is None or not 0 < number <= len(self.system.ordered):
                return "There is no such capability."
            named = self.system.ordered[number - 1].id
            if named not in self.listed_ids:
                return "This row was not listed yet: list its page first."
        self.final_try = named
        return "It exists."
