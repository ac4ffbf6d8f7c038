"""Use cases: enrichment, discovery, browsing, look-up and maintenance."""
