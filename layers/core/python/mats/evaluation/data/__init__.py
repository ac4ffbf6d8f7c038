"""Judged data sets: loaders, the sample registry, synthetic registrations, and a check for defects."""
