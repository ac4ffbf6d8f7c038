"""Items that operators write: the audiences of IAM callers.

The key of their table is `caller`: the ARN of a user, or of a role without its path, as of its sessions.
"""

from collections.abc import Callable
from functools import lru_cache

from mats.adapters.dynamodb.tables import Row, Tables, from_row

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
