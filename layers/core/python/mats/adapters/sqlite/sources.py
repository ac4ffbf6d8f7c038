"""The port `SourceBook` over SQLite: definitions of sources, outcomes of their syncs, and what came from each."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.registry import IN, as_json
from mats.domain.capability.capability import Id
from mats.domain.profile.sync import SourceKind, SourceRun, TrackedEntry, TrackedSource
from mats.ports import SourceState

_STATES = """
SELECT sources.definition, run.outcome, count(entry.id), coalesce(sum(entry.gone), 0)
FROM sources
LEFT JOIN source_runs AS run ON run.source = sources.name AND run.target = ?1
LEFT JOIN source_entries AS entry ON entry.source = sources.name AND entry.target = ?1
GROUP BY sources.name ORDER BY sources.name
"""


@dataclass(frozen=True, slots=True)
class SqliteSources:
    """The port `SourceBook` for one target: the registry in the same file, or a table elsewhere by its name."""

    database: Database
    target: str = ""

    def add(self, source: TrackedSource) -> None:
        with self.database.writing() as connection:
            text = json.dumps(asdict(source), ensure_ascii=False)
            connection.execute("INSERT OR REPLACE INTO sources VALUES (?, ?)", (source.name, text))

    def remove(self, name: str) -> bool:
        with self.database.writing() as connection:
            connection.execute("DELETE FROM source_entries WHERE source = ?", (name,))
            connection.execute("DELETE FROM source_runs WHERE source = ?", (name,))
            return connection.execute("DELETE FROM sources WHERE name = ?", (name,)).rowcount > 0

    def all(self) -> Sequence[SourceState]:
        states = []
        for definition, outcome, entries, gone in self.database.rows(_STATES, (self.target,)):
            given = json.loads(definition)
            fields = {**given, "kind": SourceKind(given["kind"]), "location": tuple(given["location"])}
            run = SourceRun(**json.loads(outcome or "{}"))
            states.append(SourceState(TrackedSource(**fields), run, entries, gone))
        return states

    def entries(self, name: str) -> Mapping[Id, TrackedEntry]:
        rows = self.database.rows(
            "SELECT id, digest, previous, gone FROM source_entries WHERE target = ? AND source = ?", (self.target, name)
        )
        return {Id(id): TrackedEntry(digest, previous, bool(gone)) for id, digest, previous, gone in rows}

    def others(self, name: str, ids: Collection[Id]) -> Mapping[Id, Mapping[str, TrackedEntry]]:
        rows = self.database.rows(
            "SELECT id, source, digest, previous, gone FROM source_entries "
            f"WHERE target = ? AND source != ? AND id IN {IN} ORDER BY source",
            (self.target, name, as_json(ids)),
        )
        found: dict[Id, dict[str, TrackedEntry]] = {}
        for id, source, digest, previous, gone in rows:
            found.setdefault(Id(id), {})[source] = TrackedEntry(digest, previous, bool(gone))
        return found

    def record(self, name: str, entries: Mapping[Id, TrackedEntry | None]) -> None:
        if not entries:
            return
        key = (self.target, name)
        with self.database.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO source_entries (target, source, id, digest, previous, gone) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                [(*key, id, *entry) for id, entry in entries.items() if entry],
            )
            connection.executemany(
                "DELETE FROM source_entries WHERE target = ? AND source = ? AND id = ?",
                [(*key, id) for id, entry in entries.items() if entry is None],
            )

    def finish(self, name: str, run: SourceRun) -> None:
        with self.database.writing() as connection:
            outcome = json.dumps(asdict(run), ensure_ascii=False)
            connection.execute("INSERT OR REPLACE INTO source_runs VALUES (?, ?, ?)", (self.target, name, outcome))
