"""`mats evaluate`."""

import typer


def add_to(app: typer.Typer) -> None:
    """Register the command."""
