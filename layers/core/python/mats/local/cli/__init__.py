"""The `mats` command."""

from mats.local.cli.main import main

__all__ = ["main"]
