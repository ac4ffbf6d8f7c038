"""An index as it would be with one more profile in it, which is not put there: production's own code can search it.

The cosine of the profile is exact. Its BM25 score is an estimate, because only the index knows how rare a word is among
all its entries; what the index gives for the same word in entries it has tells that well (`WordScores`).
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, pstdev

from mats.domain.capability import Id
from mats.domain.profile import FIELD_WEIGHTS, Profile, lexical_fields
from mats.domain.query import Filter
from mats.domain.text import stem, words
from mats.ports import Hit, SearchIndex, Stored, Vector

_K1, _B = 1.2, 0.75
"""Of BM25, in FTS5 and Lucene alike."""
_LENGTHS = [round(10 * 1.12**step) for step in range(48)]
"""Words that an entry may have on average: 10 to 2,000."""
_SAMPLE = 25
"""Entries looked at per word."""
_RAREST = 6.0
"""What a word that nobody has is worth where no other word was met: rare among some hundred entries."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The words of a profile as an index counts them: by stem, each field by its weight."""

    counts: Mapping[str, float]
    length: int

    @classmethod
    def of(cls, profile: Profile) -> "_Text":
        counts: defaultdict[str, float] = defaultdict(float)
        length = 0
        for name, text in lexical_fields(profile).items():
            said = words(text)
            length += len(said)
            for word in said:
                counts[stem(word)] += FIELD_WEIGHTS[name]
        return cls(counts, length)

    def saturation(self, word: str, average: float) -> float:
        """What BM25 multiplies the rarity of a word by, for entries of this many words on average."""
        count = self.counts.get(stem(word), 0.0)
        if not count:
            return 0.0
        return count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * self.length / average))


@dataclass(slots=True)
class WordScores:
    """Estimates the BM25 score that an index would give a profile, from the scores it gives to what it holds.

    For each word, entries that hold it are asked for and their scores divided by what BM25 makes of count and length;
    what remains is how rare the index takes the word to be. The average length of entries, which the formula needs, is
    the one for which the entries agree best about that. A word that no entry holds counts as the rarest one met.
    """

    index: SearchIndex
    admitted: Filter
    without: Id
    _met: dict[str, list[tuple[_Text, float]]] = field(default_factory=dict)
    _average: float = 0.0

    def learn(self, terms: Sequence[str]) -> None:
        """Ask the index about words it was not asked about before.

        Raises:
            DependencyFailed: the index did not answer.
        """
        for term in terms:
            if term not in self._met:
                hits = self.index.lexical([term], self.admitted, depth=_SAMPLE)
                profiles = self.index.fetch([hit.id for hit in hits if hit.id != self.without])
                texts = [(_Text.of(profiles[hit.id]), hit.score) for hit in hits if hit.id in profiles]
                self._met[term] = [pair for pair in texts if pair[0].saturation(term, 100) > 0]
        self._average = min(_LENGTHS, key=self._disagreement)

    def score(self, terms: Sequence[str], profile: Profile) -> float:
        """The score of a profile for words that were learned."""
        text = _Text.of(profile)
        return sum(self._rarity(term) * text.saturation(term, self._average) for term in terms)

    def _rarity(self, term: str) -> float:
        known = self._rarities(term, self._average)
        if known:
            return median(known)
        met = [median(values) for other in self._met if (values := self._rarities(other, self._average))]
        return max([*met, _RAREST])

    def _rarities(self, term: str, average: float) -> list[float]:
        return [score / text.saturation(term, average) for text, score in self._met.get(term, ())]

    def _disagreement(self, average: float) -> float:
        """How differently entries tell the rarity of one and the same word, over all words."""
        spreads = []
        for term in self._met:
            values = [math.log(value) for value in self._rarities(term, average) if value > 0]
            if len(values) > 1:
                spreads.append(pstdev(values))
        return fmean(spreads) if spreads else 0.0


@dataclass(frozen=True, slots=True)
class Overlay:
    """The search index port over another one, with one profile more or in another version. Nothing is written."""

    index: SearchIndex
    profile: Profile
    vector: Vector | None
    scores: WordScores

    @classmethod
    def over(cls, index: SearchIndex, entry: Stored, admitted: Filter) -> "Overlay":
        """With an entry that every caller sees, whoever may see it later: its owner asks."""
        shown = entry.profile.model_copy(update={"visible_to": None})
        return cls(index, shown, entry.vector, WordScores(index, admitted, shown.id))

    @property
    def name(self) -> str:
        """That of the index below."""
        return self.index.name

    def put(self, entries: Sequence[Stored]) -> None:
        """Refused."""
        raise TypeError("a preview writes nothing")

    def purge(self, ids: Collection[Id]) -> None:
        """Refused."""
        raise TypeError("a preview writes nothing")

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """The hits there are and, by its estimated score, the profile."""
        hits = self.index.lexical(terms, admitted, depth=depth + 1)
        return self._with(hits, self.scores.score(terms, self.profile), admitted, depth)

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """The hits there are and, by its cosine, the profile."""
        hits = self.index.neural(vector, admitted, depth=depth + 1)
        return self._with(hits, self._cosine(vector), admitted, depth)

    def _with(self, hits: Sequence[Hit], own: float | None, admitted: Filter, depth: int) -> Sequence[Hit]:
        others = [hit for hit in hits if hit.id != self.profile.id]
        if own and self._passes(admitted):
            others.append(Hit(self.profile.id, own))
        return sorted(others, key=lambda hit: (-hit.score, hit.id))[:depth]

    def _passes(self, admitted: Filter) -> bool:
        return (
            admitted.admits_kind(self.profile.kind)
            and admitted.admits_namespace(self.profile.namespace)
            and admitted.admits_tags(self.profile.tags)
        )

    def _cosine(self, vector: Vector) -> float | None:
        own = self.vector
        if own is None or len(own) != len(vector):
            return None
        return cosine(own, vector)

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        """The scores there are, and the profile's."""
        scores = dict(self.index.bm25_of(terms, [id for id in ids if id != self.profile.id]))
        return scores | ({self.profile.id: self.scores.score(terms, self.profile)} if self.profile.id in ids else {})

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        """The cosines there are, and the profile's."""
        cosines = dict(self.index.cosine_of(vector, [id for id in ids if id != self.profile.id]))
        own = self._cosine(vector)
        return cosines | ({self.profile.id: own} if own is not None and self.profile.id in ids else {})

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        """The profiles there are, and this one."""
        found = dict(self.index.fetch([id for id in ids if id != self.profile.id]))
        return found | ({self.profile.id: self.profile} if self.profile.id in ids else {})

    def page(self, admitted: Filter, *, after: Id | None, limit: int) -> Sequence[Id]:
        """That of the index below."""
        return self.index.page(admitted, after=after, limit=limit)

    def revisions(self) -> Iterator[tuple[Id, int, bool]]:
        """Those of the index below."""
        return self.index.revisions()


def cosine(one: Vector, other: Vector) -> float:
    """Of vectors of length 1, in [-1, 1]."""
    return max(-1.0, min(1.0, sum(a * b for a, b in zip(one, other, strict=True))))
