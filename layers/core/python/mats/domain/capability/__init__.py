"""Registration by an owner: kinds and ids, registrations and their faults, namespaces, callers, suspicious text."""
