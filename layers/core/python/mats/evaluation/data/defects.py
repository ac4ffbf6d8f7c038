"""What is wrong with a judged set before any system has seen it: labels that nothing in the registry answers to.

The paper describes one such source ("A broken source"): every label of `ultratool` embeds the same document, so most of
the tools it refers to are in no registry, and every system scores near zero on it.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mats.domain.capability import Id
from mats.evaluation.data.datasets import Dataset

_FEW = 5
"""Of fewer labels than this nothing can be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defects:
    """One source of a set; labels are counted once, however many queries have them."""

    source: str
    queries: int
    labels: int
    unregistered: int
    """Labels that no capability of the registry has."""
    unanswerable: int
    """Queries all of whose labels are such."""
    shared: int
    """Labels whose capabilities have one name and description: the largest such group, 0 if there is none."""

    @property
    def suspicions(self) -> tuple[str, ...]:
        """Why the source should not be trusted; empty if nothing speaks against it."""
        said = []
        if self.labels >= _FEW and 2 * self.shared > self.labels:
            said.append(f"{self.shared:,} of {self.labels:,} labels share one document")
        if 2 * self.unregistered > self.labels:
            said.append(f"{self.unregistered:,} of {self.labels:,} labels are not in the registry")
        return tuple(said)


def defects(dataset: Dataset) -> tuple[Defects, ...]:
    """Every source of a set, by name."""
    described = {r.id: (r.name, r.description) for r in dataset.registrations}
    queries = defaultdict(list)
    for query in dataset.queries:
        queries[query.source].append(query)
    made = []
    for source, part in sorted(queries.items()):
        labels: set[Id] = {id for query in part for id in query.relevant}
        known = {id: described[id] for id in labels if id in described}
        made.append(
            Defects(
                source=source or dataset.name,
                queries=len(part),
                labels=len(labels),
                unregistered=len(labels) - len(known),
                unanswerable=sum(query.relevant.isdisjoint(described) for query in part),
                shared=largest_group(known.values()),
            )
        )
    return tuple(made)


def largest_group(documents: Iterable[Hashable]) -> int:
    """How many share the commonest document; 0 if no two do."""
    commonest = max(Counter(documents).values(), default=0)
    return commonest if commonest > 1 else 0


def embedding_one(labels: Mapping[Any, Hashable]) -> Hashable | None:
    """The document that more than half of a source's labels embed, if there is one and labels are five or more.

    Args:
        labels: The document of every label of one source, by the label's id.
    """
    if len(labels) < _FEW:
        return None
    document, count = Counter(labels.values()).most_common(1)[0]
    return document if 2 * count > len(labels) else None
