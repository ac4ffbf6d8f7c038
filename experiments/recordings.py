"""Recorded replies of a language model, played in its place."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from experiments.benchmarks.reranker import token_counter
from mats.adapters.llm import ModelReply, Question, ToolCall
from mats.bootstrap.models import prices
from mats.domain.errors import DependencyFailed, ReplyUnusable, StorageUnusable
from mats.domain.prompts.usage import Usage

PRICED = "amazon.nova-micro-v1:0"  # The paper's reranker
FIRST = "4407618"  # The commit of rows that name none
_FEWEST = 0.5  # Share of a question's candidates that must have a recorded score; the others count as 0
_QUERY = re.compile(r"<request>(.*)</request>")
_CANDIDATE = re.compile(r"^\d+ (\w+ .+?)(?: \| .*)?$", re.MULTILINE)


class _Line(NamedTuple):
    """A candidate in a rerank request: its kind and name, and the whole line."""

    shown: str
    text: str


@dataclass(frozen=True)
class Recordings:
    """A folder of recorded replies.

    `rerank.jsonl` has `set`, `query_id`, `commit`, `request`, a body of chat completions, and `reply`, the arguments of
    its tool: scores `s` in order, and the type `t` where it was asked for; steps are ignored. `writer.jsonl` has `id`
    and `reply`. A recorded request is recognised by its query, and its candidates by kind and name, so that a changed
    prompt still finds its reply.
    """

    folder: Path
    counts: Counter[str] = field(default_factory=Counter)  # Candidates by `scored` and `unmatched`, and `writer`
    _matches: dict[str, tuple[int, int]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def _replies(self) -> Mapping[str, tuple[Sequence[tuple[_Line, float]], str]]:
        """By query, the candidates of its recorded request with their scores, and the type."""
        replies = {}
        for number, row in enumerate(self._rows("rerank.jsonl"), start=1):
            try:
                text, reply = row["request"]["messages"][-1]["content"], _arguments(row["reply"])
                query = json.loads(_QUERY.search(text)[1])  # type: ignore[index]  # a TypeError, if it has none
                replies[_key(query)] = list(zip(_lines(text), reply["s"], strict=True)), str(reply.get("t", ""))
            except (KeyError, TypeError, ValueError) as error:
                raise StorageUnusable(
                    f"{self.folder / 'rerank.jsonl'}, row {number}, is no recorded request with its reply: remove it"
                ) from error
        return replies

    @cached_property
    def _count_tokens(self) -> Callable[[str], int]:
        return token_counter()

    @cached_property
    def _descriptions(self) -> Mapping[str, object]:
        return {row["id"]: _arguments(row["reply"]) for row in self._rows("writer.jsonl")}

    def ask(self, question: Question) -> ModelReply:
        """The recorded reply to a question.

        Raises DependencyFailed: a request to rerank is not recorded, or fewer than half of its candidates are.
        ReplyUnusable: no description of this registration is recorded.
        """
        if question.query:
            scores, type_ = self._scores(question)
            asks_type = "t" in question.prompt.tool["schema"]["properties"]
            arguments: object = {"s": scores, **({"t": type_} if asks_type else {})}
        elif (arguments := self._descriptions.get(question.ids[0])) is None:
            raise ReplyUnusable("nothing is recorded for it")
        else:
            self._count(writer=1)
        call = ToolCall("recorded", question.prompt.tool["name"], arguments)
        return ModelReply(stop="tool_use", calls=(call,), text="", usage=self._estimate(question, arguments))

    def _estimate(self, question: Question, arguments: object) -> Usage:
        """The tokens of a request as sent now and of its reply, at the price of the paper's model."""
        sent = (question.prompt.system, json.dumps(dict(question.prompt.tool)), *question.texts)
        tokens = sum(map(self._count_tokens, sent)), self._count_tokens(json.dumps(arguments))
        return prices().usage(PRICED, *tokens)

    def _scores(self, question: Question) -> tuple[list[float], str]:
        recorded, type_ = self._replies.get(_key(question.query), ((), ""))
        scores = [_score_of(line, recorded) for line in _lines("\n".join(question.texts))]
        unmatched = scores.count(None)
        self._matches[_key(question.query)] = len(scores) - unmatched, unmatched
        if unmatched > len(scores) * (1 - _FEWEST):
            raise DependencyFailed(f"there is no recorded reply to this request ({unmatched} candidates have no score)")
        self._count(scored=len(scores) - unmatched, unmatched=unmatched)
        return [score or 0.0 for score in scores], type_

    def matches(self, query: str) -> tuple[int, int]:
        """Of the last answer to a query: how many candidates had a recorded score, and how many had none."""
        return self._matches.get(_key(query), (0, 0))

    def _count(self, **numbers: int) -> None:
        with self._lock:
            self.counts.update(numbers)

    def replied(self, name: str) -> Mapping[str, str]:
        """The queries of a set that have a recorded reply, each with the commit whose request was answered."""
        rows = self._rows("rerank.jsonl")
        return {row["query_id"]: row.get("commit", FIRST) for row in rows if row["set"] == name}

    @property
    def written_ids(self) -> Collection[str]:
        """The ids of the registrations that have a recorded description."""
        return self._descriptions.keys()

    def _rows(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a file; none if it is missing."""
        path = self.folder / name
        try:
            text = path.read_text("utf-8") if path.exists() else ""
            yield from (json.loads(line) for line in text.splitlines() if line)
        except (OSError, ValueError) as error:
            raise StorageUnusable(f"{path} cannot be read: {error}; correct or remove it") from error


def _arguments(reply: Any) -> Any:
    """A reply as the arguments of the tool; it may be recorded as their JSON."""
    return json.loads(reply) if isinstance(reply, str) else reply


def _key(query: str) -> str:
    return " ".join(query.split())


def _lines(text: str) -> list[_Line]:
    """The candidates of a rerank request, in order."""
    candidates = text[text.index("<candidates>") :]
    return [_Line(match[1], match[0]) for match in _CANDIDATE.finditer(candidates)]


def _score_of(line: _Line, recorded: Sequence[tuple[_Line, float]]) -> float | None:
    """The score of the recorded candidate with the same kind and name, of several the one with the most equal words."""
    same = [(other, score) for other, score in recorded if other.shown == line.shown]
    words = set(line.text.split())
    return max(same, key=lambda pair: len(words & set(pair[0].text.split())))[1] if same else None
