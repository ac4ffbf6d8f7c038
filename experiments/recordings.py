"""Recorded replies and graded judgements of a language model, used as one: no model is called."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from mats.adapters.llm import LanguageModels, ModelReply, Question, ToolCall
from mats.domain.errors import DependencyFailed, ReplyUnusable, StorageUnusable
from mats.domain.prompts.usage import Usage

_FEWEST = 0.5  # Share of a question's candidates that must have a score; the others count as 0 and as `unjudged`


class _Line(NamedTuple):
    """A candidate in a rerank request: its kind and name, and the whole line."""

    shown: str
    text: str


@dataclass(eq=False, kw_only=True)
class Recordings(LanguageModels):
    """A folder of recordings as a service.

    `rerank.jsonl` has `request`, a body of chat completions, and `reply`, the arguments of its tool; `writer.jsonl` has
    `id` and `reply`. `judgements/SET.jsonl` has `query_id` and `scores`, from 0 to 100 by id; the texts of its queries
    are in `../SET/queries.jsonl` (or `.gz`). A recorded request is recognised by its query and the kinds and names of
    its candidates, so that a changed prompt still finds its reply; a query without one is answered by its judgements.
    """

    folder: Path

    def __post_init__(self) -> None:
        super().__post_init__()
        self.counts: Counter[str] = Counter()
        """Questions by `replies`, `judgements`, `writer`, `refused`; candidates by `scored`, `unjudged`."""
        self._lock = Lock()
        self._ids: dict[str, tuple[set[str], set[str]]] = {}

    def warning(self) -> str:
        found = any((self.folder / name).exists() for name in ("rerank.jsonl", "writer.jsonl", "judgements"))
        return "" if found else f"{self.folder} holds no recordings: answers come without an LLM"

    @cached_property
    def replies(self) -> Mapping[str, Sequence[tuple[_Line, float]]]:
        """By query, the candidates of its recorded request with their scores."""
        replies = {}
        for number, row in enumerate(self._rows("rerank.jsonl"), start=1):
            try:
                text = row["request"]["messages"][-1]["content"]
                query = json.loads(_QUERY.search(text)[1])  # type: ignore[index]  # a TypeError, if it has none
                replies[_key(query)] = list(zip(_lines(text), _arguments(row["reply"])["s"], strict=True))
            except (KeyError, TypeError, ValueError) as error:
                raise StorageUnusable(
                    f"{self.folder / 'rerank.jsonl'}, row {number}, is no recorded request with its reply: remove it"
                ) from error
        return replies

    @cached_property
    def judgements(self) -> Mapping[str, Mapping[str, float]]:
        """By query, scores from 0 to 100 by id; a query of several sets has those of all."""
        found: dict[str, dict[str, float]] = {}
        for file in sorted((self.folder / "judgements").glob("*.jsonl")):
            texts = {row["_id"]: row["text"] for row in self._rows(f"../{file.stem}/queries.jsonl")}
            for row in self._rows(f"judgements/{file.name}"):
                if row["query_id"] in texts:
                    found.setdefault(_key(texts[row["query_id"]]), {}).update(row["scores"])
        return found

    @cached_property
    def _descriptions(self) -> Mapping[str, object]:
        return {row["id"]: _arguments(row["reply"]) for row in self._rows("writer.jsonl")}

    def ask(self, question: Question) -> ModelReply:
        """The recorded reply to a question.

        Raises DependencyFailed: a request to rerank is not recorded, and fewer than half of its candidates are judged.
        ReplyUnusable: no description of this registration is recorded.
        """
        if question.query:
            scores = self._scores(question)
            asks_type = "t" in question.prompt.tool["schema"]["properties"]  # none is recorded
            arguments: object = {"s": [round(score) for score in scores], **({"t": ""} if asks_type else {})}
        elif (arguments := self._descriptions.get(question.ids[0])) is None:
            self._count("refused")
            raise ReplyUnusable("nothing is recorded for it")
        else:
            self._count("writer")
        call = ToolCall("recorded", question.prompt.tool["name"], arguments)
        return ModelReply(stop="tool_use", calls=(call,), text="", usage=Usage())

    def grades(self, query: str) -> Mapping[str, float]:
        """The judgements of a query by id, from 0 to 100; empty if it was not judged."""
        return self.judgements.get(_key(query), {})

    def ids(self, name: str) -> tuple[set[str], set[str]]:
        """The ids of the queries of a set that have a recorded reply, and of those that were judged."""
        if name not in self._ids:
            replies = {row["query_id"] for row in self._rows("rerank.jsonl") if row["set"] == name}
            self._ids[name] = replies, {row["query_id"] for row in self._rows(f"judgements/{name}.jsonl")}
        return self._ids[name]

    def _scores(self, question: Question) -> list[float]:
        recorded = self.replies.get(_key(question.query), ())
        judged = self.judgements.get(_key(question.query), {})
        lines = _lines("\n".join(question.texts))
        scores = [
            score if (score := _score_of(line, recorded)) is not None else judged.get(id)
            for id, line in zip(question.ids, lines, strict=True)
        ]
        unjudged = scores.count(None)
        if unjudged > len(scores) * (1 - _FEWEST):
            self._count("refused")
            raise DependencyFailed(f"there is no recording of this request ({unjudged} candidates unjudged)")
        self._count("replies" if recorded else "judgements")
        self._count("scored", len(scores) - unjudged)
        self._count("unjudged", unjudged)
        return [score or 0.0 for score in scores]

    def _count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.counts[what] += number

    def _rows(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a file, plain or compressed; none if it is missing."""
        plain, packed = self.folder / name, self.folder / f"{name}.gz"
        try:
            if plain.exists():
                text = plain.read_text("utf-8")
            elif packed.exists():
                text = gzip.decompress(packed.read_bytes()).decode()
            else:
                return
            yield from (json.loads(line) for line in text.splitlines() if line)
        except (OSError, ValueError) as error:
            raise StorageUnusable(f"{plain} cannot be read: {error}; correct the file") from error


_QUERY = re.compile(r"<request>(.*)</request>")
_CANDIDATE = re.compile(r"^\d+ (\w+ .+?)(?: \| .*)?$", re.MULTILINE)


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
