"""Attacks on the ranking: what they are (`table`), how they run (`run`), what is measured (`measures`)."""
