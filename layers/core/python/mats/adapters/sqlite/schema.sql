-- What owners and operators wrote. `digest` is the fingerprint of the item.
CREATE TABLE registry (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, digest TEXT NOT NULL, item TEXT NOT NULL
);
-- What operators assigned, as a JSON object, to a capability, or to a namespace under the id `com.acme.*/*`.
CREATE TABLE trust (id TEXT PRIMARY KEY, assigned TEXT NOT NULL);

-- The event queue: a row is written in the transaction of the change itself and deleted when the change is handled.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL, source TEXT NOT NULL, change TEXT NOT NULL,
    id TEXT NOT NULL, time TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL DEFAULT 0, holder TEXT, dead TEXT
);
CREATE INDEX events_due ON events (due) WHERE dead IS NULL;

-- Profiles, the source of truth of the index, and their earlier revisions.
CREATE TABLE profiles (
    id TEXT PRIMARY KEY, rev INTEGER NOT NULL, indexed_rev INTEGER NOT NULL, status TEXT NOT NULL,
    body TEXT NOT NULL, vector BLOB,
    expires_at INTEGER  -- of the tombstone of an erased capability
);
CREATE INDEX profiles_removed ON profiles (id) WHERE status = 'deleted';
CREATE INDEX profiles_held ON profiles (id) WHERE status = 'held';
CREATE INDEX profiles_expiry ON profiles (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE profile_versions (
    id TEXT NOT NULL, rev INTEGER NOT NULL, body TEXT NOT NULL,
    expires_at INTEGER,  -- seconds since 1970; NULL: never
    PRIMARY KEY (id, rev)
);
CREATE INDEX profile_versions_expiry ON profile_versions (expires_at) WHERE expires_at IS NOT NULL;

-- The search index. `change` numbers every write, so that a process reads only what others have written since.
-- `purge` is the highest change of a row that was deleted: a process that has not seen that one reads everything again.
CREATE TABLE entries (
    row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, rev INTEGER NOT NULL, findable INTEGER NOT NULL,
    change INTEGER NOT NULL, kind TEXT, namespace TEXT NOT NULL, tags TEXT NOT NULL, visible_to TEXT,
    profile TEXT NOT NULL, encoder TEXT NOT NULL, vector BLOB
);
CREATE TABLE counter (
    change INTEGER NOT NULL, purge INTEGER NOT NULL,
    texts INTEGER NOT NULL DEFAULT 0  -- version of the terms in `lexical` (index_fields.py)
);
INSERT INTO counter (change, purge) VALUES (0, 0);
CREATE INDEX entries_change ON entries (change);
-- The terms of findable entries by row, as postings.py packs them, and how many there are.
-- The stems of their words, for those that are misspelt in requests; some may be of entries that are gone.
CREATE TABLE vocabulary (number INTEGER PRIMARY KEY, stem TEXT NOT NULL UNIQUE);
CREATE TABLE lexical (row INTEGER PRIMARY KEY, length INTEGER NOT NULL, terms BLOB NOT NULL);

-- Sources that `mats sync` reads again, and what came from each into a target: '' is this registry,
-- any other one the name of a DynamoDB table. docs/decisions/0042.
CREATE TABLE sources (name TEXT PRIMARY KEY, definition TEXT NOT NULL);
CREATE TABLE source_runs (
    target TEXT NOT NULL, source TEXT NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (target, source)
);
CREATE TABLE source_entries (
    target TEXT NOT NULL, source TEXT NOT NULL, id TEXT NOT NULL,
    digest TEXT NOT NULL, previous TEXT NOT NULL, gone INTEGER NOT NULL, PRIMARY KEY (target, source, id)
) WITHOUT ROWID;
CREATE INDEX source_entries_id ON source_entries (target, id);

-- Learning from use. What each answer leaves for some weeks; `verdict` NULL: stored before ranking.
CREATE TABLE receipts (
    query_id TEXT PRIMARY KEY, at TEXT NOT NULL, caller TEXT NOT NULL, audiences TEXT NOT NULL, text TEXT NOT NULL,
    shown TEXT NOT NULL, verdict TEXT, nearest TEXT, narrowed INTEGER NOT NULL,
    kinds TEXT NOT NULL, encoder TEXT NOT NULL, vector BLOB, expires_at INTEGER NOT NULL
);
CREATE INDEX receipts_expiry ON receipts (expires_at);
-- The answers that a caller has reported on: the receipt, which stays, and what was reported apart from outcomes.
CREATE TABLE reports (
    query_id TEXT PRIMARY KEY, at TEXT NOT NULL, caller TEXT NOT NULL, audiences TEXT NOT NULL, text TEXT NOT NULL,
    shown TEXT NOT NULL, verdict TEXT, nearest TEXT, narrowed INTEGER NOT NULL,
    kinds TEXT NOT NULL, encoder TEXT NOT NULL, vector BLOB, missing TEXT NOT NULL DEFAULT '', confirmed INTEGER NOT NULL DEFAULT 0
);
-- Reported events of each result as a JSON list.
CREATE TABLE outcomes (
    query_id TEXT NOT NULL, id TEXT NOT NULL, events TEXT NOT NULL, PRIMARY KEY (query_id, id)
) WITHOUT ROWID;
CREATE INDEX outcomes_id ON outcomes (id);
-- The answers whose reports have changed, in the order of their latest change, for the memory (memory.py).
CREATE TABLE memory (change INTEGER PRIMARY KEY AUTOINCREMENT, query_id TEXT NOT NULL UNIQUE);
CREATE TRIGGER memory_added AFTER INSERT ON outcomes
BEGIN INSERT OR REPLACE INTO memory (query_id) VALUES (new.query_id); END;
CREATE TRIGGER memory_changed AFTER UPDATE ON outcomes
BEGIN INSERT OR REPLACE INTO memory (query_id) VALUES (new.query_id); END;
CREATE TRIGGER memory_forgotten AFTER DELETE ON outcomes
BEGIN INSERT OR REPLACE INTO memory (query_id) VALUES (old.query_id); END;
CREATE TRIGGER memory_confirmed AFTER UPDATE OF confirmed ON reports
BEGIN INSERT OR REPLACE INTO memory (query_id) VALUES (new.query_id); END;
CREATE TRIGGER memory_deleted AFTER DELETE ON reports
BEGIN INSERT OR REPLACE INTO memory (query_id) VALUES (old.query_id); END;
-- What callers reported on a capability goes with its registration; what operators taught stays.
CREATE TRIGGER outcomes_removed AFTER DELETE ON registry
BEGIN DELETE FROM outcomes WHERE id = old.id AND query_id NOT LIKE 'taught:%'; END;
