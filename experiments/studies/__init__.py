"""The experiments: each module with `EXPERIMENTS` is found by the catalogue; decided ones are data in `archive`."""
