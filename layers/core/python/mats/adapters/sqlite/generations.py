"""Reindexing in SQLite: the one index is rewritten in place, entry by entry, while it answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.entries import write
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, RequestInvalid
from mats.ports import Stored, Target

_TABLE = "CREATE TABLE IF NOT EXISTS renewal (since INTEGER NOT NULL)"


@dataclass(frozen=True, slots=True)
class SqliteGenerations:
    """The port `Generations` over a file with one index; entries written since `begin` count as the new generation."""

    database: Database
    name: str

    def current(self) -> str | None:
        return self.name

    def begin(self) -> Target:
        """The same index; an interrupted reindex is resumed."""
        with self.database.writing() as connection:
            connection.execute(_TABLE)
            connection.execute(
                "INSERT INTO renewal SELECT change FROM counter WHERE NOT EXISTS (SELECT * FROM renewal)"
            )
        return Target(self.name, "", filling=True)

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        """Write revisions again, including unchanged ones."""
        with self.database.writing() as connection:
            for entry in entries:
                write(connection, entry, again=True)

    def revisions(self, target: Target) -> Iterator[tuple[Id, int, bool]]:
        """The entries written since `begin`, in order of id."""
        query = "SELECT id, rev, findable FROM entries WHERE change > (SELECT since FROM renewal) ORDER BY id"
        yield from ((Id(id), rev, bool(findable)) for id, rev, findable in self.database.rows(query))

    def promote(self, target: Target) -> None:
        with self.database.writing() as connection:
            connection.execute("DELETE FROM renewal")

    def roll_back(self) -> Target:
        message = "the local index is rewritten in place, so there is no earlier one: `mats reindex` writes it again"
        raise RequestInvalid([Fault("", message)])

    def retire(self) -> Sequence[str]:
        """A no-op: there is no other index."""
        return ()
