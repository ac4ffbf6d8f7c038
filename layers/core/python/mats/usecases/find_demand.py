"""Find demand: what was asked for and not found."""

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mats.domain.learning.demand import Asked, Gap, gap_of, is_gap
from mats.domain.learning.outcome import effective_event, pack_vector
from mats.domain.profile.index_fields import lexical_fields
from mats.domain.text.words import content_words, stem, stems
from mats.ports import Grouped, Grouping, Outcomes, ReceiptLog, SearchIndex

MOST = 10_000  # Requests that are read, the latest
LEAST_COSINE = 0.5  # Of the vectors of two requests with one meaning: docs/decisions/0050
_LEAST_COSINE_OF_WORDS = 0.4  # The same of requests that have no vector
_WORD_BUCKETS = 512


class Demand(NamedTuple):
    """Gaps, those of most callers first, and of how many requests since when; `ungrouped` have no text nor vector."""

    gaps: Sequence[Gap]
    requests: int
    unmet: int
    ungrouped: int
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindDemand:
    """Groups the latest requests that nothing served by their vectors, and those without a vector by their words."""

    receipts: ReceiptLog
    outcomes: Outcomes
    index: SearchIndex
    group: Grouping

    def __call__(self, since: str) -> Demand:
        """The demand since a time, ISO 8601 in UTC. Raises DependencyFailed: a store or the index did not answer."""
        asked = self._collect(since)
        known = [each for each in asked if each.unmet]
        encoders = Counter(each.receipt.encoder for each in known if each.receipt.vector)
        encoder = min(encoders, key=lambda name: (-encoders[name], name), default="")
        by_vector = [each for each in known if each.receipt.vector and each.receipt.encoder == encoder]
        grouped = {each.receipt.query_id for each in by_vector}
        by_words = [each for each in known if each.receipt.query_id not in grouped and each.text]
        found = [
            *self._groups(by_vector, [each.receipt.vector or b"" for each in by_vector], LEAST_COSINE),
            *self._groups(by_words, [_word_vector(each.text) for each in by_words], _LEAST_COSINE_OF_WORDS),
        ]
        nearest = {id for members, _ in found for each in members if (id := each.receipt.nearest)}
        profiles = self.index.fetch(sorted(nearest))
        said = {id: stems(" ".join(lexical_fields(profile).values())) for id, profile in profiles.items()}
        gaps = [gap_of(members, met, said) for members, met in found]
        return Demand(
            gaps=sorted(gaps, key=lambda gap: (-gap.callers, -gap.weight, gap.first, gap.name)),
            requests=len(asked),
            unmet=sum(each.unmet > 0 for each in asked),
            ungrouped=len(known) - len(by_vector) - len(by_words),
            since=since,
        )

    def _collect(self, since: str) -> list[Asked]:
        """The latest requests, each with what was reported on it."""
        asked = {receipt.query_id: Asked(receipt=receipt) for receipt in self.receipts.since(since, most=MOST)}
        for query_id in self.outcomes.query_ids():
            answer = self.outcomes.of(query_id)
            if answer is None or answer.receipt.at < since:
                continue
            events = frozenset(event for each in answer.events.values() if (event := effective_event(each)))
            receipt = asked[query_id].receipt if query_id in asked else answer.receipt
            asked[query_id] = Asked(receipt=receipt, events=events, missing=answer.missing)
        return sorted(asked.values(), key=lambda each: (each.receipt.at, each.receipt.query_id), reverse=True)[:MOST]

    def _groups(
        self, known: Sequence[Asked], vectors: Sequence[bytes], least_cosine: float
    ) -> list[tuple[list[Asked], float]]:
        """The groups of unmet requests that are demand, each with the weight of like requests that were served."""
        unmet = [position for position, each in enumerate(known) if each.unmet > 0]
        met = [position for position, each in enumerate(known) if each.unmet < 0]
        groups: Sequence[Grouped] = self.group(
            [vectors[position] for position in unmet],
            [vectors[position] for position in met],
            least_cosine=least_cosine,
        )
        found = [
            ([known[unmet[one]] for one in group.members], -sum(known[met[one]].unmet for one in group.beside))
            for group in groups
        ]
        return [(members, weight) for members, weight in found if is_gap(members, weight)]


def _word_vector(text: str) -> bytes:
    """The stems of a text, hashed into as many components as a small encoder has."""
    buckets = [0.0] * _WORD_BUCKETS
    for word in content_words(text):
        buckets[zlib.crc32(stem(word).encode()) % _WORD_BUCKETS] = 1.0
    return pack_vector(buckets)
