"""The local index is made anew in place, one entry after the other from its profile, while it goes on answering."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.index import write
from mats.domain.capability import Id
from mats.domain.errors import Fault, RequestInvalid
from mats.ports import Stored, Target

_TABLE = "CREATE TABLE IF NOT EXISTS renewal (since INTEGER NOT NULL)"


@dataclass(frozen=True, slots=True)
class SqliteGenerations:
    """The generations port over one file, in which there is one index; what was written since it began is new."""

    database: Database
    name: str

    def current(self) -> str | None:
        """The index there is."""
        return self.name

    def begin(self) -> Target:
        """The same index, to be written again; where a renewal has begun, it goes on."""
        with self.database.writing() as connection:
            connection.execute(_TABLE)
            connection.execute(
                "INSERT INTO renewal SELECT change FROM counter WHERE NOT EXISTS (SELECT * FROM renewal)"
            )
        return Target(self.name, "", filling=True)

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        """Write revisions, also those that are there already."""
        with self.database.writing() as connection:
            for entry in entries:
                write(connection, entry, again=True)

    def revisions(self, target: Target) -> Iterator[tuple[Id, int, bool]]:
        """What has been written since the renewal began, in order of id."""
        query = "SELECT id, rev, findable FROM entries WHERE change > (SELECT since FROM renewal) ORDER BY id"
        with self.database.reading() as connection:
            rows = connection.execute(query).fetchall()
        yield from ((Id(id), rev, bool(findable)) for id, rev, findable in rows)

    def promote(self, target: Target) -> None:
        """The renewal is over."""
        with self.database.writing() as connection:
            connection.execute("DELETE FROM renewal")

    def roll_back(self) -> Target:
        """There is no other index.

        Raises:
            RequestInvalid: always.
        """
        raise RequestInvalid([Fault("", "the local index is made anew in place; there is none to go back to")])

    def retire(self) -> Sequence[str]:
        """There is no other index."""
        return ()
