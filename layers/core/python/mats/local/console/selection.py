"""Which rows of the list a query selects, in which order, and how many there are of each facet."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from heapq import nsmallest
from itertools import chain
from typing import Annotated, Any

from pydantic import BaseModel, Field

from mats.domain.capability.capability import Kind
from mats.local.console.list_row import ListRow, Show
from mats.local.console.use_counts import UseCounts

MAX_TEXT = 2_000
"""Characters of a text parameter."""
_MOST_NAMESPACES = 12
"""Namespaces of a facet, those with most capabilities."""


class Sort(StrEnum):
    """The columns to sort by; descending with a minus."""

    ID = "id"
    TRUST = "trust"
    TRUST_DOWN = "-trust"
    UPDATED = "updated"
    UPDATED_DOWN = "-updated"
    REGISTERED_DOWN = "-registered"
    SHOWN = "shown"
    SHOWN_DOWN = "-shown"
    SUCCESS = "success"
    SUCCESS_DOWN = "-success"


_COLUMNS: Mapping[str, Callable[[ListRow, UseCounts], Any]] = {
    "trust": lambda row, uses: row.trust,
    "updated": lambda row, uses: row.updated or None,
    "registered": lambda row, uses: row.registered or None,
    "shown": lambda row, uses: uses.times_shown(row.id),
    "success": lambda row, uses: uses.outcomes_of(row.id).last_success,
}
"""The value of a row in each column; None: it has none, and comes last."""


class ListQuery(BaseModel, frozen=True, extra="forbid"):
    """The parameters of a page of the list: its filters, its order, its start and its length."""

    show: Show = Show.ALL
    kind: tuple[Kind, ...] = ()
    ns: tuple[Annotated[str, Field(max_length=MAX_TEXT)], ...] = ()
    """Namespaces: a capability is in one of them or below it."""
    q: Annotated[str, Field(max_length=MAX_TEXT)] = ""
    sort: Sort = Sort.ID
    after: Annotated[str, Field(max_length=MAX_TEXT)] = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50

    def select(self, rows: Sequence[ListRow]) -> Sequence[ListRow]:
        """The rows that match, in their order."""
        text, below = self.q.casefold(), tuple(f"{one.rstrip('.*')}." for one in self.ns if one)
        if self.show is not Show.ALL:
            rows = [row for row in rows if self.show in row.shows]
        if self.kind:
            rows = [row for row in rows if row.kind in self.kind]
        if below:
            rows = [row for row in rows if f"{row.namespace}.".startswith(below)]
        return [row for row in rows if text in row.search_text] if text else rows

    def order(self, rows: Sequence[ListRow], uses: UseCounts) -> Sequence[ListRow]:
        """Rows, which are in order of id, in the order asked for; ties by id."""
        if self.sort is Sort.ID:
            return rows
        name, column = self.sort.removeprefix("-"), _COLUMNS[self.sort.removeprefix("-")]
        values = [column(row, uses) for row in rows]  # no pairs: so many new objects start a garbage collection
        present = (place for place, value in enumerate(values) if value is not None)
        places = sorted(present, key=values.__getitem__, reverse=name != self.sort)
        return [
            *map(rows.__getitem__, places),
            *(row for row, value in zip(rows, values, strict=True) if value is None),
        ]

    def facets(self, rows: Sequence[ListRow]) -> dict[str, Any]:
        """The number of rows of each kind, namespace and named filter, each without the filter by itself."""
        found = ListQuery(q=self.q).select(rows)
        kinds = Counter(row.kind for row in self._without(found, kind=()))
        namespaces = Counter(row.namespace for row in self._without(found, ns=()))
        common = nsmallest(_MOST_NAMESPACES, namespaces.items(), key=lambda one: (-one[1], one[0]))
        return {
            "kinds": {kind: kinds[kind] for kind in Kind},
            "namespaces": [{"namespace": namespace, "count": count} for namespace, count in common],
            "shows": count_shows(self._without(found, show=Show.ALL)),
        }

    def _without(self, found: Sequence[ListRow], **changes: Any) -> Sequence[ListRow]:
        """Of rows that have the text: those that match this query with changes."""
        return self.model_copy(update={"q": "", **changes}).select(found)


def count_shows(rows: Iterable[ListRow]) -> dict[str, int]:
    """The number of rows of each named filter."""
    counts = Counter(chain.from_iterable(row.shows for row in rows))
    return {show: counts[show] for show in Show}
