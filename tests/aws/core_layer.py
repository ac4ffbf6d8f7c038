"""The core layer as a folder, as Lambda has it."""

import shutil
from pathlib import Path

from infra.core_layer import LEFT_OUT, SOURCE


def copy_core_layer(folder: Path) -> Path:
    """Copy the contents of the layer into a new folder, and return the one that Lambda puts on the path."""
    left_out = {str(SOURCE / "python" / "mats" / path) for path in LEFT_OUT}

    def ignore(parent: str, names: list[str]) -> list[str]:
        return [name for name in names if name == "__pycache__" or f"{parent}/{name}" in left_out]

    return Path(shutil.copytree(SOURCE, folder, ignore=ignore)) / "python"
