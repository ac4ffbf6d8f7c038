"""What an owner registers: kinds and ids, registrations and their faults, namespaces, callers, suspicious text."""
