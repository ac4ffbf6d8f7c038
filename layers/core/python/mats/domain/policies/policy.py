"""What a policy is: an addition to the pipeline that acts at some of six moments of an answer.

For each text of a request: `read` corrects or narrows it before it is searched; `look` reads what the policy needs to
know, beside the search; `nominate` changes the order of fusion; `choose` says which of the first hits may be
candidates; `shift` changes their measurements, while the reranker is asked. For the whole answer, `arrange` changes the
order after the blend. What a policy reads, its evidence, goes to its own later steps and to nobody else; what another
one must know of a candidate is a mark (`mats.domain.search.candidate.Marks`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.search.blend import Scoring
from mats.domain.search.candidate import UNMARKED, Candidate, Marks
from mats.domain.search.lookups import LexicalQuery, Lookups, Vector
from mats.domain.search.query import Filter, Holds
from mats.domain.search.scale import Scores, best_first
from mats.domain.search.shortlist import Ranked
from mats.domain.text.words import query_terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A text of a request, as its caller wrote it and as policies read it."""

    text: str
    searched: str  # The same, without what says nothing here: what is searched by words
    plain: str  # The same, spelled right and without the names of products: what is encoded
    admitted: Filter
    guessed: Sequence[str] = ()  # What words of it that the registry does not have may mean
    now_s: float = 0.0  # Seconds since 1970
    caller: str = ""  # Whose own reports count in full; empty for nobody
    holds: Holds | None = None
    foreign: bool = False  # The encoder does not read its language
    notes: tuple[str, ...] = ()  # What its reader should know

    @classmethod
    def of(cls, text: str, admitted: Filter, **more: Any) -> "Ask":
        return cls(text=text, searched=text, plain=text, admitted=admitted, **more)

    @property
    def texts(self) -> tuple[str, ...]:
        """The text as searched and as encoded."""
        return self.searched, self.plain

    @property
    def words(self) -> LexicalQuery:
        return LexicalQuery(terms=query_terms(self.searched), guessed=self.guessed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The hits for a text, best first: `ids` are in order of their fused `scores`, unless a policy placed them."""

    scores: Scores
    cosine: Scores
    k: int
    ids: Sequence[Id]

    def with_scores(self, scores: Scores) -> "Order":
        """The order by other scores."""
        return replace(self, scores=scores, ids=best_first(scores))

    def led_by(self, ids: Iterable[Id]) -> "Order":
        """The order with these first."""
        return replace(self, ids=list(dict.fromkeys((*ids, *self.ids))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The first hits, in order, and which of them may be among the `k` candidates, by position."""

    ask: Ask
    k: int
    profiles: Sequence[Profile] = ()
    seen: int = 0  # Profiles that were read, with those that were excluded
    kept: Sequence[int] = ()
    spare: Sequence[int] = ()  # Those that take only places which nothing else takes
    instead: Filter | None = None  # What is searched for the places of the spare ones
    marks: Mapping[Id, Marks] = field(default_factory=dict)
    excluded: Mapping[Id, str] = field(default_factory=dict)  # With the reason

    def mark(self, ids: Iterable[Id], **marks: Any) -> "Pool":
        """The pool with these marks set on some of its profiles."""
        changed = {id: replace(self.marks.get(id, UNMARKED), **marks) for id in ids}
        return replace(self, marks={**self.marks, **changed}) if changed else self

    def positions(self, has: Callable[[Marks], object]) -> list[int]:
        """The positions of profiles whose marks are such."""
        return [n for n, profile in enumerate(self.profiles) if has(self.marks.get(profile.id, UNMARKED))]

    def without(self, excluded: Mapping[Id, str]) -> "Pool":
        """The pool without these, before any position is told."""
        profiles = [profile for profile in self.profiles if profile.id not in excluded]
        kept = range(len(profiles))
        return replace(self, profiles=profiles, kept=kept, excluded={**self.excluded, **excluded})

    @property
    def free(self) -> int:
        """Places of candidates that further profiles may take."""
        return min(self.seen, self.k) - len(self.kept)

    def candidates(self) -> list[Profile]:
        """The first `k` that are kept, in order; spare ones fill what is left."""
        return [self.profiles[position] for position in sorted([*self.kept, *self.spare][: self.k])]


class Policy:
    """One addition: a value with a name. Each step has a default that changes nothing."""

    name: ClassVar[str]
    reads: ClassVar[Collection[str]] = ()
    """Its steps that read a store. They run as stages: within a budget, and if one fails the answer says so."""

    def read(self, ask: Ask, index: Lookups) -> tuple[Ask, Any]:
        """The text as it should be searched, and the evidence for `look`."""
        return ask, None

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: Any) -> Any:
        """The evidence for the steps that follow."""
        return evidence

    def nominate(self, order: Order, evidence: Any) -> Order:
        return order

    def choose(self, pool: Pool, evidence: Any) -> Pool:
        """The pool with what it leaves out and marks. May be called again with more profiles."""
        return pool

    def shift(self, candidates: Sequence[Candidate], evidence: Any, ask: Ask, scoring: Scoring) -> Sequence[Candidate]:
        return candidates

    def arrange(self, ranked: Ranked) -> Ranked:
        return ranked
