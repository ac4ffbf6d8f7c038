"""Candidates, what policies mark on them, and results: candidates with their scores."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.profile.index_fields import MatchedWords
from mats.domain.profile.profile import Profile
from mats.domain.search.signals import Signal


class Exactness(IntEnum):
    """How a request names a capability, the least exact first."""

    NAME = 1  # The name or the title, folded
    SPELLED = 2  # The name or the title, endings included
    ID = 3
    TAUGHT = 4  # An operator taught the request: it comes first, whatever it is named


class Elsewhere(NamedTuple):
    """Products that a request names, as it spells them, to which a candidate does not belong."""

    products: tuple[str, ...]
    told: bool  # It says that what it asks for is to be done there


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """All that policies may tell each other of a candidate."""

    exact: Exactness | None = None
    near: frozenset[Id] = frozenset()  # Its near-duplicates: candidates, or left out for others
    new: bool = False  # Unrated, and new beside other candidates
    unfit: str = ""  # Why its caller cannot call it; empty if nothing is known against it
    step: int = 0  # Its place among what serves the steps that the request implies; 0: it serves none
    quoted: bool = False  # The request is an example that its owner wrote
    plain: bool = False  # Its name has every thing that was asked for
    elsewhere: Elsewhere | None = None  # The request names products that it neither belongs to nor speaks of


UNMARKED = Marks()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedFor:
    """The remembered requests that vote for a capability."""

    requests: int  # How many
    callers: int  # Of how many callers
    similarity: float  # The best
    texts: tuple[str, ...] = ()  # Those that the asking caller may read, most similar first


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A profile that retrieval found, with its raw measurements; None where a side of the search was off.

    `pairs` counts the neighbouring words of the request that are also neighbours in the profile. Policies may add
    `shift` to the mixture of the measurements, and `gain` to that by which it is ordered, which gives no relevance;
    `least` is the `retrieval` that it has at least, in [0, 1).
    """

    profile: Profile
    bm25: float | None
    cosine: float | None
    pairs: int = 0
    marks: Marks = UNMARKED
    shift: float = 0.0
    alone: float = 0.0  # The shift without what other callers reported
    rise: float = math.inf  # By how many places those may lift it
    gain: float = 0.0
    least: float = 0.0
    used_for: UsedFor | None = None  # The remembered requests that vote for it
    id: Id = field(init=False)  # That of the profile, which computes it anew each time

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.profile.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A candidate with its score, the signals and weights behind it, and its relevance on its own.

    `alternates` are near-duplicates that were left out; each is named by its first near-duplicate in the answer only.
    """

    candidate: Candidate
    score: float
    signals: Mapping[Signal, float]
    weights: Mapping[Signal, float]
    relevance: float
    suspicious: tuple[str, ...] = ()
    why: MatchedWords | None = None
    alternates: tuple[Id, ...] = ()
    moved: bool = False  # Whether what callers reported places it higher

    @property
    def id(self) -> Id:
        return self.candidate.id

    @property
    def unfit(self) -> str:
        return self.candidate.marks.unfit
