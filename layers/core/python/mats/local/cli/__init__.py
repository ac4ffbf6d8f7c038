"""The `mats` command."""

import sys

from mats.domain.errors import command_to_install


def main() -> None:
    """Run a command, or say how to install what the command line needs."""
    try:
        from mats.local.cli.main import main as run  # noqa: PLC0415 - an installation may lack the extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("mats", "infra"):
            raise
        sys.exit(f"error: {error.name} is not installed: {command_to_install('local')}")
    run()
