"""The `mats` command."""

from local.cli.main import main

__all__ = ["main"]
