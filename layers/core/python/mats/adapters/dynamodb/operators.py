"""Items that operators write: the audiences of IAM callers, and synonyms.

Audiences are in a table with the key `caller`: the ARN of a user, or of a role without its path, as of its sessions.
"""

import contextlib
from collections.abc import Callable
from functools import lru_cache

from mats.adapters.dynamodb.tables import InTable, Row, Tables, from_row, to_row
from mats.domain.errors import RequestInvalid
from mats.domain.text.variants import Groups, with_group
from mats.domain.text.words import clean

_FRESH_MS, _MAX_CACHED = 60_000, 10_000


class DynamoCallers:
    """The audiences of IAM callers, by consistent reads, cached for at most a minute. Safe to share between threads."""

    def __init__(self, tables: Tables, table: str, elapsed_ms: Callable[[], float]) -> None:
        self._elapsed_ms = elapsed_ms
        self._read = lru_cache(_MAX_CACHED)(
            lambda caller, minute: _audiences(tables.get(table, {"caller": {"S": caller}}))
        )

    def audiences(self, caller: str) -> frozenset[str]:
        """The audiences of a role or user, by its ARN as `principal` gives it.

        Raises DependencyFailed: the table did not answer, and nothing is cached.
        """
        return self._read(caller, self._elapsed_ms() // _FRESH_MS)


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
