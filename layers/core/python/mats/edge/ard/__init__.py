"""Agentic Resource Discovery (v0.91): docs/ard.md says how the specification is read."""
