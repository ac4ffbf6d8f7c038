"""The local mode's database: registry, trust, events, profiles with their versions, lexical index and vectors."""
