"""The `mats` command."""

import sys


def main() -> None:
    """Run a command, or say how to install what the command line needs."""
    try:
        from mats.local.cli.main import main as run  # noqa: PLC0415 - an installation may lack the extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("mats", "infra"):
            raise
        sys.exit(f"error: {error.name} is not installed: pip install 'mats[local]'")
    run()
