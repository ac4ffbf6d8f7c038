"""Items that operators write: the audiences of IAM callers, and synonyms.

Audiences are in a table with the key `caller`: the ARN of a role or user.

API Gateway passes a session's ARN, which lacks the path of its role, and people copy ARNs with paths from IAM. So an
item under the role's ARN without a path is looked up by its key; if there is none, the items with other spellings of
the same role count. Their keys cannot be known, so they come from a scan, at most once in a minute.
"""

import contextlib
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mats.adapters.dynamodb.tables import InTable, Row, Tables, from_row, to_row
from mats.domain.capability.capability import principal
from mats.domain.errors import NotPermitted, RequestInvalid
from mats.domain.text.variants import Groups, with_group
from mats.domain.text.words import clean

LOGGER = logging.getLogger("mats")
_FRESH_MS, _MAX_CACHED = 60_000, 10_000
_COLUMNS = {
    "ProjectionExpression": "#caller, #audiences",
    "ExpressionAttributeNames": {"#caller": "caller", "#audiences": "audiences"},
}


@dataclass(slots=True)
class DynamoCallers:
    """The audiences of IAM callers, by consistent reads, cached for a minute. Safe to share between threads."""

    tables: Tables
    table: str
    elapsed_ms: Callable[[], float]
    _cache: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    _spellings: tuple[float, Mapping[str, frozenset[str]]] | None = None
    _lock: Any = field(default_factory=threading.Lock)

    def audiences(self, caller: str) -> frozenset[str]:
        """The audiences of a role or user, by its ARN as `principal` gives it.

        Raises DependencyFailed: the table did not answer, and nothing is cached.
        """
        cached = self._cache.get(caller)
        if cached and self.elapsed_ms() - cached[0] < _FRESH_MS:
            return cached[1]
        row = self.tables.get(self.table, {"caller": {"S": caller}})
        audiences = _audiences(row) if row else self._by_other_spellings(caller)
        with self._lock:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[caller] = (self.elapsed_ms(), audiences)
        return audiences

    def _by_other_spellings(self, caller: str) -> frozenset[str]:
        """The audiences of all items that name this role in another way; a user has one ARN only."""
        if ":role/" not in caller:
            return frozenset()
        with self._lock:
            if self._spellings is None or self.elapsed_ms() - self._spellings[0] >= _FRESH_MS:
                self._spellings = (self.elapsed_ms(), self._scan())
            return self._spellings[1].get(caller, frozenset())

    def _scan(self) -> Mapping[str, frozenset[str]]:
        """By principal, the items under other ARNs than the principal's own, from the first megabyte of the table."""
        try:
            page = self.tables.ask(self.table, "scan", ConsistentRead=True, **_COLUMNS)
        except NotPermitted as error:
            LOGGER.warning("callers are matched by their exact ARN only: %s", error)
            return {}
        if "LastEvaluatedKey" in page:
            LOGGER.warning("%s is larger than 1 MB, so ARNs with a path may not match: leave the path out", self.table)
        found: dict[str, frozenset[str]] = defaultdict(frozenset)
        for row in page.get("Items", ()):
            written = str(row.get("caller", {}).get("S", ""))
            if principal(written) != written:
                found[principal(written)] |= _audiences(row)
        return dict(found)


def _audiences(row: Row) -> frozenset[str]:
    """The names in a list or a set; an item that people mistyped has none."""
    listed = from_row(row).get("audiences")
    return frozenset(each for each in listed if isinstance(each, str)) if isinstance(listed, list) else frozenset()


_SYNONYMS = {"name": {"S": "synonyms"}}


class DynamoSynonyms(InTable):
    """The port `SynonymBook`: one item, with the list `groups` of lists of words."""

    def load(self) -> Groups:
        listed = from_row(self.tables.get(self.table, _SYNONYMS)).get("groups")
        groups: Groups = ()
        for group in listed if isinstance(listed, list) else ():
            with contextlib.suppress(RequestInvalid, TypeError):
                groups = with_group(groups, [clean(word) for word in group])
        return groups

    def save(self, groups: Groups) -> None:
        item = {"name": "synonyms", "groups": [list(group) for group in groups]}
        self.tables.ask(self.table, "put_item", Item=to_row(item))
