"""Constructs: one part of the system each, with its grants."""
