"""The feedback function."""
