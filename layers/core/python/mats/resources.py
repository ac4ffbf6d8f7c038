"""Where the files beside the code are: in an installed wheel below `mats/resources`, otherwise in the repository."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[4]
"""The root of the clone; without meaning in an installed wheel."""
_PACKAGED = Path(__file__).with_name("resources")


def resource(path: str) -> Path:
    """The file or folder at this path of the repository, such as `console` or `examples`; it need not exist."""
    packaged = _PACKAGED / path
    return packaged if packaged.exists() else REPOSITORY / path
