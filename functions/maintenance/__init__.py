"""The enrichment function."""
