-- What owners and operators wrote. `digest` tells an unchanged registration from a changed one.
CREATE TABLE IF NOT EXISTS registry (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, digest TEXT NOT NULL, item TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS trust (id TEXT PRIMARY KEY, trust INTEGER NOT NULL);

-- The event path: written in the transaction of the change itself, taken by whoever enriches, gone when done.
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL, source TEXT NOT NULL, change TEXT NOT NULL,
    id TEXT NOT NULL, time TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL DEFAULT 0, holder TEXT, dead TEXT
);
CREATE INDEX IF NOT EXISTS events_due ON events (due) WHERE dead IS NULL;

-- Profiles, the source of truth of the index, and what they were before.
CREATE TABLE IF NOT EXISTS profiles (
    id TEXT PRIMARY KEY, rev INTEGER NOT NULL, indexed_rev INTEGER NOT NULL, status TEXT NOT NULL,
    body TEXT NOT NULL, vector BLOB
);
CREATE TABLE IF NOT EXISTS profile_versions (
    id TEXT NOT NULL, rev INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id, rev)
);

-- The search index. `change` numbers every write, so that a process can catch up with the others; after a `purge`,
-- which leaves no rows to catch up with, it starts over.
CREATE TABLE IF NOT EXISTS entries (
    row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, rev INTEGER NOT NULL, findable INTEGER NOT NULL,
    change INTEGER NOT NULL, kind TEXT, namespace TEXT NOT NULL, tags TEXT NOT NULL, visible_to TEXT,
    profile TEXT NOT NULL, encoder TEXT NOT NULL, vector BLOB
);
CREATE TABLE IF NOT EXISTS counter (change INTEGER NOT NULL, purge INTEGER NOT NULL);
INSERT INTO counter SELECT 0, 0 WHERE NOT EXISTS (SELECT * FROM counter);
CREATE INDEX IF NOT EXISTS entries_change ON entries (change);
CREATE VIRTUAL TABLE IF NOT EXISTS lexical USING fts5 (
    name, summary, action, keywords, description, examples, parameters, other, tokenize = 'porter unicode61'
);
