"""The streams function."""
