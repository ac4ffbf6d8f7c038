"""Registry and trust in SQLite. A write puts its change into the event queue in the same transaction."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

from mats.adapters.sqlite.database import Database
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import CapabilityNotFound, PreconditionFailed
from mats.domain.profile.assignment import (
    NOTHING_ASSIGNED,
    Assigned,
    Policy,
    namespace_of_pattern,
    parse_row,
    resolve,
    resolve_all,
)
from mats.domain.profile.origin import Placed, Version, fingerprint, place, version_of
from mats.domain.profile.profile import Profile
from mats.ports import Clock, Ids, Item, Precondition

T = TypeVar("T")


class TaggedItem(NamedTuple):
    """An item as JSON text, and an ETag that changes with it."""

    etag: str
    text: str


IN = "(SELECT value FROM json_each(?))"  # A list of ids as one parameter, made by `as_json`

_IDS = "SELECT id FROM registry WHERE id >= ? AND id < ?"  # The ids within these `_bounds`


def _bounds(namespace: str) -> tuple[str, str]:
    """The ids in a namespace or below it are from the first to before the second; of none: all ids.

    After the namespace comes a dot or a slash, which are neighbours in ASCII and in the order of ids.
    """
    return (f"{namespace}.", f"{namespace}{chr(ord('/') + 1)}") if namespace else ("", "\U0010ffff")


def as_json(ids: Collection[Id]) -> str:
    """The parameter for `IN`."""
    return json.dumps(list(ids))


@dataclass(frozen=True, slots=True)
class Announcer:
    """Puts changes into the event queue, within the transaction of the write."""

    clock: Clock
    ids: Ids

    def __call__(self, connection: sqlite3.Connection, source: str, change: str, id: Id) -> None:
        """Announce a change (INSERT, MODIFY or REMOVE) of an id in a table (Registry or Trust)."""
        connection.execute(
            "INSERT INTO events (event_id, source, change, id, time) VALUES (?, ?, ?, ?, ?)",
            (self.ids(), source, change, id, self.clock.now()),
        )


def _load(connection: sqlite3.Connection, id: Id) -> TaggedItem | None:
    row = connection.execute("SELECT digest, item FROM registry WHERE id = ?", (id,)).fetchone()
    return row and TaggedItem(*row)


def register(connection: sqlite3.Connection, announce: Announcer, registration: Registration) -> Placed:
    """Write and announce a registration, unless it is there."""
    id, item = registration.id, registration.item()
    after = version_of(item)
    before = connection.execute("SELECT kind, digest FROM registry WHERE id = ?", (id,)).fetchone()
    placed = place(before and Version(*before), after)
    if placed.writes:
        connection.execute(
            "INSERT OR REPLACE INTO registry (id, kind, digest, item) VALUES (?, ?, ?, ?)",
            (id, *after, json.dumps(item, ensure_ascii=False)),
        )
        announce(connection, "Registry", "MODIFY" if placed is Placed.CHANGED else "INSERT", id)
    return placed


def assign(connection: sqlite3.Connection, key: Id, assigned: Assigned) -> None:
    """Write a row of trust; an empty one is deleted."""
    if assigned:
        row = (key, json.dumps(assigned.to_row(), ensure_ascii=False))
        connection.execute("INSERT OR REPLACE INTO trust (id, assigned) VALUES (?, ?)", row)
    else:
        connection.execute("DELETE FROM trust WHERE id = ?", (key,))


@dataclass(frozen=True, slots=True)
class SqliteRegistry:
    """The port `SyncTarget` over SQLite, with conditional writes: of two that read the same version, the second fails.

    The ETag is the fingerprint of the item.
    """

    database: Database
    announce: Announcer

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        rows = self.database.rows(f"SELECT id, item FROM registry WHERE id IN {IN}", (as_json(ids),))
        return {id: json.loads(item) for id, item in rows}

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        """In one transaction; of several registrations under one id the last wins."""
        with self.database.writing() as connection:
            return {each.id: register(connection, self.announce, each) for each in registrations}

    def get_tagged(self, id: Id) -> TaggedItem | None:
        """An item with its ETag, if there is one."""
        with self.database.reading() as connection:
            return _load(connection, id)

    def put_if(self, precondition: Precondition, registration: Registration) -> Placed:
        """Write a registration if the precondition is true; check and write are one transaction.

        Raises PreconditionFailed: the precondition is false.
        """
        with self.database.writing() as connection:
            before = _load(connection, registration.id)
            if not precondition(before and before.etag):
                raise PreconditionFailed(registration.id)
            return register(connection, self.announce, registration)

    def edit(
        self, id: Id, change: Callable[[Item], Registration], precondition: Precondition = lambda etag: True
    ) -> tuple[Placed, Registration]:
        """Replace an item by what `change` makes of it, which is in one transaction: edits at once lose nothing.

        Raises CapabilityNotFound: there is no item. PreconditionFailed: the precondition is false.
        """
        with self.database.writing() as connection:
            before = _load(connection, id)
            if before is None:
                raise CapabilityNotFound(id)
            if not precondition(before.etag):
                raise PreconditionFailed(id)
            registration = change(json.loads(before.text))
            return register(connection, self.announce, registration), registration

    def remove_if(self, precondition: Precondition, id: Id) -> bool:
        """Remove an item if the precondition is true; returns whether it existed.

        Raises PreconditionFailed: the item exists, and the precondition is false.
        """
        with self.database.writing() as connection:
            before = _load(connection, id)
            if before is None:
                return False
            if not precondition(before.etag):
                raise PreconditionFailed(id)
            connection.execute("DELETE FROM registry WHERE id = ?", (id,))
            self.announce(connection, "Registry", "REMOVE", id)
            return True

    def remove(self, id: Id) -> bool:
        return self.remove_if(lambda _: True, id)

    def remove_same(self, id: Id, item: Item) -> bool:
        return self.remove_if(lambda etag: etag == fingerprint(item), id)

    def ids(self, *, after: Id | None = None, namespace: str = "") -> Iterator[Id]:
        rows = self.database.rows(f"{_IDS} AND id > ? ORDER BY id", (*_bounds(namespace), after or ""))
        yield from (Id(id) for (id,) in rows)


@dataclass(frozen=True, slots=True)
class SqliteTrust:
    """The port `TrustBook` over SQLite."""

    database: Database
    announce: Announcer

    def get(self, ids: Collection[Id]) -> Mapping[Id, Assigned]:
        return resolve_all(ids, self.rows)

    def rows(self, keys: Collection[Id]) -> Mapping[Id, Assigned]:
        rows = self.database.rows(f"SELECT id, assigned FROM trust WHERE id IN {IN}", (as_json(keys),))
        return {id: parse_row(json.loads(assigned)) for id, assigned in rows}

    def namespaces(self) -> Mapping[str, Assigned]:
        """The rows of namespaces, by namespace, in order of id."""
        rows = self.database.rows("SELECT id, assigned FROM trust ORDER BY id")
        found = ((namespace_of_pattern(id), assigned) for id, assigned in rows)
        return {namespace: parse_row(json.loads(assigned)) for namespace, assigned in found if namespace is not None}

    def put(self, key: Id, assigned: Assigned) -> None:
        self.edit(key, lambda _: assigned)

    def edit(self, key: Id, change: Callable[[Assigned], Assigned]) -> Assigned:
        """Change a row in one transaction, and announce it for every registered capability that it concerns."""
        with self.database.writing() as connection:
            row = connection.execute("SELECT assigned FROM trust WHERE id = ?", (key,)).fetchone()
            assigned = change(parse_row(json.loads(row[0])) if row else NOTHING_ASSIGNED)
            assign(connection, key, assigned)
            namespace = namespace_of_pattern(key)
            known = (
                ("SELECT id FROM registry WHERE id = ?", (key,)) if namespace is None else (_IDS, _bounds(namespace))
            )
            for (id,) in connection.execute(*known).fetchall():
                self.announce(connection, "Trust", "MODIFY" if assigned else "REMOVE", id)
        return assigned


def snapshot(database: Database, lost: list[Id] | None = None) -> Iterator[Profile | Item | tuple[Id, Assigned]]:
    """Rows of trust, profiles of held entries, and items: all that another registry needs to show the same.

    Each in order of id, as of one moment. What is shown in a namespace under review, or has trust of its own, has a row
    that approves it; where the latest registration of what is rated is not what is shown, that row approves none. Ids
    of what cannot be read in a damaged file are added to `lost`. Raises as `Database.reading` does; with `lost`, only
    if nothing can be read.
    """
    with database.error_translation(), closing(database.connect()) as connection:
        connection.execute("BEGIN")
        read = partial(_read_parsed, connection, lost)
        rows = dict(read("trust", "assigned", lambda row: parse_row(json.loads(row))))
        decided = list[tuple[Id, str, bool, bool]]()
        with nullcontext() if lost is None else suppress(sqlite3.DatabaseError):  # a damaged file has no approvals
            decided = _list_decided(connection) if rows else []
        for id, digest, is_shown, is_registered in decided:
            own, all_of_it = rows.get(id, NOTHING_ASSIGNED), resolve(id, rows)
            is_reviewed = all_of_it.policy is Policy.REVIEW if is_shown else is_registered and all_of_it.is_rated
            if own.trust is not None or is_reviewed:
                rows[id] = replace(own, approved=digest)
        yield from sorted(rows.items())
        known = len(lost or ())
        yield from (held for _, held in read("profiles", "body", Profile.model_validate_json, "status = 'held'"))
        unshown = frozenset((lost or [])[known:])  # The profiles that hold back their registrations are lost
        yield from (item for id, item in read("registry", "item", json.loads) if id not in unshown)


def _read_parsed(
    connection: sqlite3.Connection,
    lost: list[Id] | None,
    table: str,
    column: str,
    parse: Callable[[str], T],
    condition: str = "TRUE",
) -> Iterator[tuple[Id, T]]:
    """The parsed values of a column, by id; with `lost`, without those that cannot be read."""
    if lost is None:
        yield from ((id, parse(text)) for id, text in _read_rows(connection, table, column, condition))
        return
    for id, text in _read_around(connection, lost, table, column, condition):
        try:
            found = parse(text)
        except (ValueError, TypeError):
            lost.append(id)
        else:
            yield id, found


def _read_rows(
    connection: sqlite3.Connection, table: str, column: str, condition: str = "TRUE", *parameters: Id, hint: str = ""
) -> Iterator[tuple[Id, str]]:
    yield from connection.execute(f"SELECT id, {column} FROM {table} {hint} WHERE {condition} ORDER BY id", parameters)


def _read_around(
    connection: sqlite3.Connection, lost: list[Id], table: str, column: str, condition: str = "TRUE"
) -> Iterator[tuple[Id, str]]:
    """As `_read_rows`, without the rows of damaged pages."""
    for hint in ("", "NOT INDEXED"):
        with suppress(sqlite3.DatabaseError):
            yield from list(_read_rows(connection, table, column, condition, hint=hint))
            return
    for (id,) in connection.execute(f"SELECT id FROM {table} WHERE {condition} ORDER BY id").fetchall():
        try:
            yield from _read_rows(connection, table, column, "id = ?", id)
        except sqlite3.DatabaseError:
            lost.append(Id(id))


def _list_decided(connection: sqlite3.Connection) -> list[tuple[Id, str, bool, bool]]:
    """List the entries that are not held: id, digest, whether the registration is shown, whether there is one.

    Where the registration is not shown, because it is removed, invalid or not processed yet, no registration has the
    digest.
    """
    query = (
        "SELECT id, iif(shown, digest, json_extract(body, '$.content')), shown, digest IS NOT NULL FROM "
        "(SELECT *, status = 'active' AND digest IS NOT NULL AND id NOT IN (SELECT id FROM events) AS shown "
        "FROM profiles LEFT JOIN registry USING (id)) WHERE status != 'held'"
    )
    return connection.execute(query).fetchall()


def read_snapshot(connection: sqlite3.Connection) -> Iterator[Item | tuple[Id, Assigned]]:
    """Every item, then every row of trust, each in order of id."""
    for _, item in _read_rows(connection, "registry", "item"):
        yield json.loads(item)
    for id, row in _read_rows(connection, "trust", "assigned"):
        yield id, parse_row(json.loads(row))
