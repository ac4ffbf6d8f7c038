"""Values and arithmetic of capabilities, profiles, queries and ranking. No I/O."""
