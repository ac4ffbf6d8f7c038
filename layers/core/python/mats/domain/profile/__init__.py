"""What enrichment makes of a registration: the profile, its origin, its texts in the index, operators' assignments."""
