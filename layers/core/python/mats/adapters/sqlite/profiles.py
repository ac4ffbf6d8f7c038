"""Profiles and their versions in SQLite, and their list."""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mats.adapters.clock import FOR_EVER, Retention
from mats.adapters.sqlite.database import Database, Watch
from mats.adapters.sqlite.registry import IN, as_json
from mats.domain.capability.capability import Id, capability_id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import Profile, Status
from mats.domain.search.lookups import Vector
from mats.ports import GUARD_DAYS, Stored


class ListedProfile(NamedTuple):
    """A current profile, and whether the index has acknowledged this revision. Its own `indexed_rev` may be older."""

    profile: Profile
    indexed: bool


def to_blob(vector: Vector | None) -> bytes | None:
    """A vector as float32 in this machine's byte order."""
    return None if vector is None else vector.tobytes()


@dataclass(frozen=True, slots=True)
class SqliteProfiles:
    """The port `ProfileStore` over SQLite. `indexed_rev` is a column; the one in the body may be older."""

    database: Database
    retention: Retention = FOR_EVER

    def get(self, ids: Collection[Id]) -> Mapping[Id, Stored]:
        query = f"SELECT id, indexed_rev, body, vector FROM profiles WHERE id IN {IN}"
        found: dict[Id, Stored] = {}
        for id, indexed_rev, body, blob in self.database.rows(query, (as_json(ids),)):
            profile = Profile.model_validate_json(body).model_copy(update={"indexed_rev": indexed_rev})
            found[id] = Stored(profile, None if blob is None else array("f", blob))
        return found

    def save(self, changes: Sequence[Stored]) -> Collection[Id]:
        superseded: list[Id] = []
        with self.database.writing() as connection:
            for table in ("profile_versions", "profiles"):
                connection.execute(f"DELETE FROM {table} WHERE expires_at <= ?", (self.retention.now(),))
            for profile, blob in ((change.profile, to_blob(change.vector)) for change in changes):
                before = connection.execute("SELECT rev FROM profiles WHERE id = ?", (profile.id,)).fetchone()
                if (before[0] if before else 0) != profile.rev - 1:
                    superseded.append(profile.id)
                    continue
                connection.execute(
                    "INSERT INTO profile_versions (id, rev, body, expires_at) "
                    "SELECT id, rev, body, ? FROM profiles WHERE id = ?",
                    (self.retention.expires_at(), profile.id),
                )
                connection.execute(
                    "INSERT OR REPLACE INTO profiles (id, rev, indexed_rev, status, body, vector) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (profile.id, profile.rev, profile.indexed_rev, profile.status, profile.model_dump_json(), blob),
                )
        return superseded

    def mark_indexed(self, revs: Mapping[Id, int]) -> None:
        with self.database.writing(durable=False) as connection:
            connection.executemany(
                "UPDATE profiles SET indexed_rev = ? WHERE id = ? AND rev = ?",
                [(rev, id, rev) for id, rev in revs.items()],
            )

    def versions(self, id: Id) -> Sequence[Profile]:
        query = "SELECT body FROM profile_versions WHERE id = ? AND coalesce(expires_at > ?, TRUE) ORDER BY rev"
        rows = self.database.rows(query, (id, self.retention.now()))
        return [Profile.model_validate_json(body) for (body,) in rows]

    def removals(self, namespace: str) -> Sequence[Profile]:
        query = (
            "SELECT version.body FROM profiles JOIN profile_versions AS version "
            "ON version.id = profiles.id AND version.rev = profiles.rev - 1 "
            "WHERE profiles.status = 'deleted' AND profiles.id >= ? AND profiles.id < ?"
        )
        first = capability_id(namespace, "")
        return [Profile.model_validate_json(body) for (body,) in self.database.rows(query, (first, f"{first[:-1]}0"))]

    def erase(self, id: Id) -> int:
        with self.database.writing() as connection:
            row = connection.execute("SELECT status FROM profiles WHERE id = ?", (id,)).fetchone()
            if row and row[0] != Status.DELETED:
                raise DependencyFailed(f"{id} has been written again; erase it again if it has to go")
            expiry = self.retention.in_days(GUARD_DAYS)
            connection.execute("UPDATE profiles SET expires_at = ? WHERE id = ?", (expiry, id))
            return connection.execute("DELETE FROM profile_versions WHERE id = ?", (id,)).rowcount

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        rows = self.database.rows("SELECT id FROM profiles WHERE id > ? ORDER BY id", (after or "",))
        yield from (Id(id) for (id,) in rows)

    def vectors(self) -> dict[str, int]:
        """The number of active profiles with a vector, by encoder."""
        query = (
            "SELECT json_extract(body, '$.encoder'), count(*) FROM profiles "
            "WHERE status = 'active' AND vector IS NOT NULL GROUP BY 1"
        )
        return dict(self.database.rows(query))

    def counts(self) -> dict[str, dict[str, int]]:
        rows = self.database.rows
        kinds = rows(
            "SELECT json_extract(body, '$.kind'), count(*) FROM profiles WHERE status = 'active' GROUP BY 1 ORDER BY 1"
        )
        [progress] = rows(
            "SELECT coalesce(sum(indexed_rev = rev), 0), count(vector), "
            "coalesce(sum(json_extract(body, '$.enriched')), 0) FROM profiles WHERE status = 'active'"
        )
        return {
            "kinds": {str(kind): count for kind, count in kinds},
            "status": dict(rows("SELECT status, count(*) FROM profiles GROUP BY 1 ORDER BY 1")),
            "progress": dict(zip(("indexed", "with a vector", "enriched"), progress, strict=True)),
        }


@dataclass(frozen=True, slots=True)
class SqliteListing:
    """The registry and its profiles for readers that keep a copy; a position is the number of a write to the index."""

    database: Database
    watch: Watch

    def version(self) -> int:
        """A number that changes with every write to registry, profiles or queue, by any process; cheap to read."""
        return self.watch.version()

    def kinds(self) -> Mapping[Id, str]:
        """The kind of every registered id as its item has it, in order of id."""
        return dict(self.database.rows("SELECT id, kind FROM registry ORDER BY id"))

    def list_held(self) -> Sequence[Id]:
        """The ids whose latest registration waits for an operator."""
        return [Id(id) for (id,) in self.database.rows("SELECT id FROM profiles WHERE status = 'held' ORDER BY id")]

    def changes(self, since: int | None) -> tuple[int, Sequence[Id]]:
        """The position to ask from next, and what was indexed after `since`, tombstones included; None: every profile.

        Relies on every revision going to the index soon after it is saved, tombstones and rejected ones included.
        """
        query = "SELECT id, change FROM entries WHERE change > ? ORDER BY change"
        written = self.database.rows(query, (since or 0,))
        position = written[-1][1] if written else since or 0
        changed = self.database.rows("SELECT id FROM profiles") if since is None else written
        return position, [Id(row[0]) for row in changed]

    def profiles(self, ids: Collection[Id]) -> Sequence[ListedProfile]:
        """The current profiles there are, without vectors."""
        query = f"SELECT body, rev = indexed_rev FROM profiles WHERE id IN {IN}"
        rows = self.database.rows(query, (as_json(ids),))
        return [ListedProfile(Profile.model_validate_json(body), bool(indexed)) for body, indexed in rows]
