"""Remembered requests: those that ended in success, with what served them. docs/decisions/0048."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import TAUGHT, Event, ReportedAnswer, effective_event
from mats.domain.profile.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    query_id: str
    text: str  # Empty if queries are not kept as text
    caller: str
    audiences: frozenset[str]
    at: str
    used: frozenset[Id]
    passed_over: frozenset[Id] = frozenset()  # Shown before the last of the `used`, or reported as failed or wrong
    confirmed: bool = False  # By an operator
    encoder: str = ""
    vector: bytes = b""  # Packed (`mats.domain.learning.outcome`); empty where only the votes are read

    @property
    def is_lesson(self) -> bool:
        """An operator's own, not a caller's."""
        return self.query_id.startswith(TAUGHT)


class Near(NamedTuple):
    """A remembered request with the cosine of its vector and that of a new one."""

    similarity: float
    memory: Remembered

    def awake(self, profiles: Mapping[Id, Profile]) -> "Near":
        """The same without the uses of capabilities whose text was replaced since: a vote is on a text."""
        memory = self.memory
        named = (memory.used | memory.passed_over) & profiles.keys()
        newer = {id for id in named if profiles[id].is_newer_than(memory.at)}
        if not newer:
            return self
        return self._replace(memory=replace(memory, used=memory.used - newer, passed_over=memory.passed_over - newer))


LESSONS = 5  # Most lessons that are read for one request


def with_lessons(found: Iterable[Near], lessons: Iterable[Near], depth: int) -> list[Near]:
    """The best `depth` of those found, and beside them the best of the lessons; best first."""
    best = [*nearest_first(found)[:depth], *nearest_first(lessons)[:LESSONS]]
    return nearest_first({near.memory.query_id: near for near in best}.values())


def nearest_first(near: Iterable[Near]) -> list[Near]:
    """The most similar first, equal ones by query id."""
    return sorted(near, key=lambda each: (-each.similarity, each.memory.query_id))


def remember(answer: ReportedAnswer) -> Remembered | None:
    """The memory entry of an answer with reports; None without success or vector, or if filters chose its results.

    A caller that narrows a request to its own capability is shown it, whatever it asks; an operator may confirm that.
    """
    receipt = answer.receipt
    if receipt.narrowed and not answer.confirmed:
        return None
    ended = {id: effective_event(events) for id, events in answer.events.items()}
    used = frozenset(id for id, event in ended.items() if event is Event.SUCCEEDED)
    if not used or not receipt.vector:
        return None
    chosen = {id for id, event in ended.items() if event in (Event.SUCCEEDED, Event.SELECTED)}
    bad = {id for id, event in ended.items() if event in (Event.FAILED, Event.WRONG)}
    last = max((position for position, id in enumerate(receipt.shown) if id in used), default=0)
    return Remembered(
        query_id=receipt.query_id,
        text=receipt.text,
        caller=receipt.caller,
        audiences=receipt.audiences,
        at=receipt.at,
        used=used,
        passed_over=frozenset({*receipt.shown[:last], *bad} - chosen),
        confirmed=answer.confirmed,
        encoder=receipt.encoder,
        vector=receipt.vector,
    )
