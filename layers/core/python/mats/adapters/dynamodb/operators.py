"""Items that operators write: the audiences of IAM callers, and synonyms.

Audiences are in a table with the key `caller`: the ARN of a user, or of a role without its path, as of its sessions.
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mats.adapters.dynamodb.tables import InTable, Row, Tables, from_row, to_row
from mats.domain.errors import RequestInvalid
from mats.domain.text.variants import Groups, with_group
from mats.domain.text.words import clean

_FRESH_MS, _MAX_CACHED = 60_000, 10_000


@dataclass(slots=True)
class DynamoCallers:
    """The audiences of IAM callers, by consistent reads, cached for a minute. Safe to share between threads."""

    tables: Tables
    table: str
    elapsed_ms: Callable[[], float]
    _cache: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def audiences(self, caller: str) -> frozenset[str]:
        """The audiences of a role or user, by its ARN as `principal` gives it.

        Raises DependencyFailed: the table did not answer, and nothing is cached.
        """
        cached = self._cache.get(caller)
        if cached and self.elapsed_ms() - cached[0] < _FRESH_MS:
            return cached[1]
        audiences = _audiences(self.tables.get(self.table, {"caller": {"S": caller}}))
        with self._lock:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[caller] = (self.elapsed_ms(), audiences)
        return audiences


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
