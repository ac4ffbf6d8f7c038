"""The experiments: each module has one as `EXPERIMENT`, which the catalogue finds."""
