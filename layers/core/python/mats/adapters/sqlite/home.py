"""Files of a registry: private to their owner, replaced as a whole."""

import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OURS = "mats."  # The prefix of the names of all files of a registry
_PARTIAL = ".mats-partial"  # The end of the name of a file that is being written

LOGGER = logging.getLogger("mats")


def open_private(path: str | Path, flags: int) -> int:
    """An `opener` for files that nobody but their owner may use."""
    return os.open(path, flags, 0o600)


def prepare(file: Path) -> None:
    """Create a database's folder and file if they are missing, and withdraw what other users may do with them.

    A folder that holds other files, too, stays as it is. Raises OSError: they cannot be created.
    """
    folder = file.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(open_private(file, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    every = list(folder.iterdir())
    ours = [entry for entry in every if entry.name.startswith(_OURS)]
    for path in (*([folder] if ours == every else []), *ours):
        with suppress(OSError):  # gone meanwhile, another user's, or on a read-only disk
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & _OTHERS and not path.is_symlink():
                path.chmod(mode & ~_OTHERS)
                LOGGER.warning("%s could be used by other users (mode %03o); now only by its owner", path, mode)


class WriteInProgress(OSError):
    """Another process writes the same file."""


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A private, empty file that takes the place of `file` when the block ends, or goes if the block raises.

    Once replaced, the content is durable. What a crash has left is deleted by the next writer in the folder. Raises
    WriteInProgress: another process writes the same file. OSError: it cannot be written.
    """
    for left in file.parent.glob(f".*{_PARTIAL}"):
        with suppress(OSError):  # it has a writer
            descriptor = _open_alone(left)
            for suffix in ("-journal", ""):
                left.with_name(left.name + suffix).unlink(missing_ok=True)
            os.close(descriptor)
    partial = file.with_name(f".{file.name}{_PARTIAL}")
    descriptor = _open_alone(partial)
    try:
        yield partial
        os.fsync(descriptor)
        partial.replace(file)
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # makes its name durable
        finally:
            os.close(folder)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _open_alone(partial: Path) -> int:
    descriptor = open_private(partial, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), partial.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass  # as where its writer has just finished: the name is free again, or another file's
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    raise WriteInProgress
