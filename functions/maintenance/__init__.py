"""The maintenance function."""
