"""Registry and profiles as a list that is kept up to date."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mats.adapters.sqlite.database import Database, Watch
from mats.adapters.sqlite.registry import IN, as_json
from mats.domain.capability import Id
from mats.domain.profile import Profile
from mats.ports import ListedProfile, ProfileChanges


@dataclass(frozen=True, slots=True)
class SqliteListing:
    """The port `Listing` over SQLite; a position is the number of a write to the index."""

    database: Database
    watch: Watch

    def version(self) -> int:
        return self.watch.version()

    def kinds(self) -> Mapping[Id, str]:
        with self.database.reading() as connection:
            return dict(connection.execute("SELECT id, kind FROM registry ORDER BY id").fetchall())

    def changes(self, since: int | None) -> ProfileChanges:
        """Relies on every revision going to the index soon after it is saved, tombstones and rejected ones included."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT change, id FROM entries WHERE change > ? ORDER BY change", (since or 0,)
            ).fetchall()
            position = rows[-1][0] if rows else since or 0
            if since is None:
                return ProfileChanges(position, [Id(id) for (id,) in connection.execute("SELECT id FROM profiles")])
        return ProfileChanges(position, [Id(id) for _, id in rows])

    def profiles(self, ids: Collection[Id]) -> Sequence[ListedProfile]:
        query = f"SELECT body, rev = indexed_rev FROM profiles WHERE id IN {IN}"
        with self.database.reading() as connection:
            rows = connection.execute(query, (as_json(ids),)).fetchall()
        return [ListedProfile(Profile.model_validate_json(body), bool(indexed)) for body, indexed in rows]
