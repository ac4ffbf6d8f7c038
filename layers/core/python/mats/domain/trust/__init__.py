"""Defences of the ranking: copies, near-duplicates, claimed providers, echoed queries, grounding of written text."""
