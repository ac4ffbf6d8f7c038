"""The receipt of an answer, the outcomes that its caller reports on its results, and what operators teach."""

import hashlib
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self

from mats.domain.capability.capability import Id, Kind
from mats.domain.search.verdict import Verdict
from mats.domain.text.words import spelled_words

SHARED = "shared"  # Caller: everybody behind one token. What one of them reports is not the own report of another.


def asking(caller: str) -> str:
    """The caller whose own reports count in full for a request; empty for nobody."""
    return "" if caller == SHARED else caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    query_id: str
    text: str  # The query; empty if queries are not logged as text
    caller: str  # The ARN of a principal, the subject of a token, or `local`; empty in an operator's lesson
    audiences: frozenset[str]
    at: str  # ISO 8601 in UTC
    shown: tuple[Id, ...]  # The results that the caller got, best first
    verdict: Verdict | None = None
    """None if it was stored before the candidates were ranked: `shown` then has all of them, in order of retrieval."""
    nearest: Id | None = None  # The best candidate, shown or not
    narrowed: bool = False  # True if the query had filters
    kinds: tuple[Kind, ...] = ()  # Those that it asked for, if these were its only filter
    encoder: str = ""  # Name of the encoder of the vector; empty without a vector
    vector: bytes | None = None  # Of the query, as `pack_vector` makes it

    def to_json(self) -> dict[str, Any]:
        """Every attribute but the vector, as JSON, for stores."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "vector"}
        return {**values, "audiences": sorted(self.audiences), "shown": list(self.shown), "kinds": list(self.kinds)}

    @classmethod
    def from_json(cls, row: Mapping[str, Any], vector: bytes | None) -> Self:
        """The receipt of `to_json`, which may lack what is None and have attributes of others."""
        values = {each.name: row[each.name] for each in fields(cls) if each.name in row}
        verdict = values.get("verdict")
        parsed = {
            "audiences": frozenset(values["audiences"]),
            "shown": tuple(map(Id, values["shown"])),
            "kinds": tuple(map(Kind, values.get("kinds", ()))),
            "verdict": Verdict(verdict) if verdict else None,
            "narrowed": bool(values["narrowed"]),
        }
        return cls(**{**values, **parsed, "vector": vector})


def pack_vector(vector: Collection[float]) -> bytes:
    """The components as float16, little-endian: half the size, and enough for a cosine."""
    return struct.pack(f"<{len(vector)}e", *vector)


def unpack_vector(packed: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(packed) // 2}e", packed)


TAUGHT = "taught:"
"""How the query ids of what operators taught begin: no answer has such an id, so that nobody can report on one."""


def taught_id(text: str) -> str:
    """The query id under which a request is taught; the same for texts that differ in case and punctuation alone."""
    folded = " ".join(spelled_words(text)) or text
    return TAUGHT + hashlib.sha256(folded.encode()).hexdigest()[:32]


class Event(StrEnum):
    """An outcome of a result. Of several events of one result, the last of them in this order counts."""

    SELECTED = "selected"  # The caller chose it
    SUCCEEDED = "succeeded"  # It did what was asked for
    FAILED = "failed"  # It was called and failed
    WRONG = "wrong"  # It does something else than what was asked for


def effective_event(events: Collection[Event]) -> Event | None:
    """The event that counts, in whatever order they were reported; None if there is none."""
    return max(events, key=list(Event).index, default=None)


@dataclass(frozen=True, slots=True)
class Outcome:
    id: Id
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A caller's report about an answer; `missing` says in its own words what it did not find."""

    query_id: str
    caller: str
    outcomes: tuple[Outcome, ...]
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedAnswer:
    """An answer with everything its caller has reported, which outlives the receipt."""

    receipt: Receipt
    events: Mapping[Id, frozenset[Event]]
    missing: str = ""  # The latest that was reported
    confirmed: bool = False  # By an operator
