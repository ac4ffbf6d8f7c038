"""The product of enrichment: the profile, its origin, its texts in the index, operators' assignments."""
