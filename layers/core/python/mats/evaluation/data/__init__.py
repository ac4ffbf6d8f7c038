"""Judged data sets: files, the sample registry, sets of a registry of one's own, and a check for defects."""
