"""Defects of a judged set: labels that are not in its registry, or share one document.

The paper describes one such source ("A broken source"): every label of `ultratool` embeds the same document, so most of
its labels are in no registry, and every system scores near zero on it.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, JudgedQuery

_FEW = 5
"""Sources with fewer labels are not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defects:
    """Counts of one source of a set; each label counts once."""

    source: str
    queries: int
    labels: int
    unregistered: int
    """Labels that are not in the registry."""
    unanswerable: int
    """Queries without a registered label."""
    shared: int
    """The largest group of labels with the same name and description; 0 if there is none."""

    @property
    def suspicions(self) -> tuple[str, ...]:
        """Reasons not to trust the source; empty if there are none."""
        reasons = []
        if self.labels >= _FEW and 2 * self.shared > self.labels:
            reasons.append(f"{self.shared:,} of {self.labels:,} labels share one document")
        if 2 * self.unregistered > self.labels:
            reasons.append(f"{self.unregistered:,} of {self.labels:,} labels are not in the registry")
        return tuple(reasons)


def defects(dataset: Dataset) -> tuple[Defects, ...]:
    described = {r.id: (r.name, r.description) for r in dataset.registrations}
    queries = defaultdict(list)
    for query in dataset.queries:
        queries[query.source].append(query)
    return tuple(_defects(source or dataset.name, part, described) for source, part in sorted(queries.items()))


def _defects(source: str, queries: Sequence[JudgedQuery], described: Mapping[Id, Hashable]) -> Defects:
    labels = {id for query in queries for id in query.relevant}
    known = [described[id] for id in labels if id in described]
    return Defects(
        source=source,
        queries=len(queries),
        labels=len(labels),
        unregistered=len(labels) - len(known),
        unanswerable=sum(query.relevant.isdisjoint(described) for query in queries),
        shared=largest_group(known),
    )


def largest_group(documents: Iterable[Hashable]) -> int:
    """The count of the most frequent document; 0 if all are different."""
    commonest = max(Counter(documents).values(), default=0)
    return commonest if commonest > 1 else 0
