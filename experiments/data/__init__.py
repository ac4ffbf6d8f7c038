"""Data makers: published sets and made-up registries as judged sets."""
