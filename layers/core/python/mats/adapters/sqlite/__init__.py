"""The local mode's one file: registry, trust, events, profiles with their versions, lexical index and vectors."""
