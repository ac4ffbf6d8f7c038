"""The folder of a registry: nobody but its owner may read it, and a lock tells whether a process uses it."""

import fcntl
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OURS = "mats."
"""What the names of all files of a registry begin with."""

LOGGER = logging.getLogger("mats")


def open_private(path: str | Path, flags: int) -> int:
    """An `opener` for files that nobody but their owner may use."""
    return os.open(path, flags, 0o600)


def prepare(file: Path) -> None:
    """Create a database's folder and file if they are missing, and withdraw what other users may do with them.

    A folder that holds other files, too, stays as it is.

    Raises:
        OSError: they cannot be created.
    """
    folder = file.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(open_private(file, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    every = list(folder.iterdir())
    ours = [entry for entry in every if entry.name.startswith(_OURS)]
    for path in (*([folder] if ours == every else []), *ours):
        _tighten(path)


def _tighten(path: Path) -> None:
    with suppress(OSError):  # gone meanwhile, another user's, or on a read-only disk
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & _OTHERS and not path.is_symlink():
            path.chmod(mode & ~_OTHERS)
            LOGGER.warning("%s could be used by other users (mode %03o); now only by its owner", path, mode)


class HomeInUse(OSError):
    """Another process uses the registry."""


def lock(file: Path, *, alone: bool = False) -> IO[bytes] | None:
    """Lock a database's folder until the returned file is closed or the process ends; None where locks do not work.

    Processes that use the registry share the lock; one that replaces its file needs it `alone`.

    Raises:
        HomeInUse: the lock is held in the other way.
    """
    try:
        held = os.fdopen(open_private(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT), "rb")
    except OSError:  # a folder that one may only read
        return None
    try:
        fcntl.flock(held, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError as error:
        held.close()
        raise HomeInUse from error
    except OSError:  # a file system without locks
        held.close()
        return None
    return held
