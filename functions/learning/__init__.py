"""The learning function."""
