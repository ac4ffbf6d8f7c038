"""Put first the capability whose id, name or title the request is: docs/decisions/0079.

What is so named, and what has the request among its owner's examples, is a match in a registry of any size.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.policies.policy import Ask, Order, Policy, Pool
from mats.domain.profile.index_keys import fold
from mats.domain.profile.profile import Profile
from mats.domain.search.blend import Scoring
from mats.domain.search.candidate import UNMARKED, Candidate, Exactness, Result
from mats.domain.search.lookups import Lookups, Vector, fetch_admitted
from mats.domain.search.shortlist import Ranked
from mats.domain.text.words import spelled_words, split_identifier

_MOST_READ = 50  # Profiles that are read for one text
_MOST = 5  # Exact matches of one text: names and titles are free, so that a flood of them must not take the answer
NAMED = 0.7  # Least `retrieval` of what was asked for by its name, whatever its words

Found = Mapping[Id, Exactness]


@dataclass(frozen=True)
class Exact(Policy):
    """Names and titles are free: one does not pass what has more trust and a higher score. An id is its owner's."""

    name: ClassVar = "exact"
    reads: ClassVar = ("look",)
    unrated: int  # The trust of an unrated profile beside others, 0 to 100

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Found:
        found: dict[Id, Exactness] = {}
        for text in dict.fromkeys((ask.text, *ask.texts)):
            ids = index.exact([f"={key}"], ask.admitted, most=_MOST_READ) if (key := fold(text)) else ()
            profiles = fetch_admitted(index, ids, ask.admitted)
            found |= {id: exact for id, exact in self._first(text, profiles).items() if id not in found}
        return found

    def _first(self, text: str, profiles: Iterable[Profile]) -> Found:
        """The exact matches that count, in order."""
        found = [(exact, profile) for profile in profiles if (exact := exactness(text, profile))]
        found.sort(key=lambda one: self._order(*one))
        return {profile.id: exact for exact, profile in found[:_MOST]}

    def _order(self, exact: Exactness, profile: Profile) -> tuple[bool, int, int, bool, str]:
        """Ids first, then by trust, spelling, lifecycle and day of registration."""
        deprecated = profile.lifecycle is Lifecycle.DEPRECATED
        return exact is not Exactness.ID, -profile.trust_or(self.unrated), -exact, deprecated, profile.day

    def nominate(self, order: Order, evidence: Found | None) -> Order:
        return order.led_by(evidence) if evidence else order

    def choose(self, pool: Pool, evidence: Found | None) -> Pool:
        for id, exact in (evidence or {}).items():
            before = pool.marks.get(id, UNMARKED).exact
            pool = pool.mark([id], exact=max(exact, before or exact))
        asked = fold(pool.ask.text)
        return pool.mark(
            [each.id for each in pool.profiles if asked and asked in map(fold, each.examples_by_owner)], quoted=True
        )

    def shift(
        self, candidates: Sequence[Candidate], evidence: Found | None, ask: Ask, scoring: Scoring
    ) -> Sequence[Candidate]:
        named = [self._of_product(each, ask) for each in candidates]
        return [replace(each, least=NAMED) if each.marks.exact else each for each in named]

    @staticmethod
    def _of_product(candidate: Candidate, ask: Ask) -> Candidate:
        """The candidate; one of another product than was named is not named by the rest of the request."""
        marks, named = candidate.marks, exactness(ask.text, candidate.profile)
        is_free = marks.exact in (Exactness.NAME, Exactness.SPELLED)
        return replace(candidate, marks=replace(marks, exact=named)) if is_free and marks.elsewhere else candidate

    def arrange(self, ranked: Ranked) -> Ranked:
        ranked = ranked.with_results([_as_match(each, ranked.thresholds.match) for each in ranked.results])
        exact = [(each.candidate.marks.exact, each.candidate.profile, each) for each in ranked.results]
        found = [(kind, profile, each) for kind, profile, each in exact if kind]
        if not found:
            return ranked
        found.sort(key=lambda one: self._order(one[0], one[1]))
        ordered, start = list(ranked.results), 0
        for kind, profile, result in found:
            trust = 100 if kind is Exactness.ID else profile.trust_or(self.unrated)
            before = ordered.index(result)
            others = (ordered[n].candidate.profile for n in range(start, before))
            place = next((n for n, other in enumerate(others, start) if other.trust_or(self.unrated) <= trust), before)
            ordered.insert(place, ordered.pop(before))
            start = place + 1
        return ranked.with_results(ordered)


def _as_match(result: Result, match: float) -> Result:
    """The result at least as relevant as a match if it is what was named, or what its owner said to be asked so."""
    marks = result.candidate.marks
    is_asked = marks.exact or (marks.quoted and not marks.new)
    return replace(result, relevance=max(result.relevance, match)) if is_asked else result


def exactness(text: str, profile: Profile) -> Exactness | None:
    """How exactly a text is the id, the name or the title of a profile; None if it is none of them."""
    asked, named = fold(text), [profile.name, profile.source.title if profile.source else ""]
    if asked == fold(profile.id):
        return Exactness.ID
    if asked in map(fold, named):
        return Exactness.SPELLED if _spelling(text) in map(_spelling, named) else Exactness.NAME
    return None


def _spelling(text: str) -> list[str]:
    return spelled_words(split_identifier(text))
