"""The arrays of an index in a file beside the database, so that a start need not read every entry.

The file is a copy that may be deleted at any time. The database has the digest of the one that fits; a change that an
index does not see as the change of an entry replaces the key: docs/decisions/0066.
"""

import hashlib
import logging
import os
import stat
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mats.adapters.sqlite import home
from mats.adapters.sqlite.arrays import Arrays, as_array, from_array
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.entries import NEW_KEY
from mats.domain.errors import DependencyFailed

SAVED = "mats.arrays"  # The file's name, in the folder of the database
SAVED_FROM = 20_000  # Entries, from which on arrays are saved; to read fewer takes less than half a second
_FORMAT = 2

T = TypeVar("T")
LOGGER = logging.getLogger("mats")


class SavedArrays:
    """The file of one database, with the vectors of one encoder, by its name."""

    def __init__(self, database: Database, encoder: str) -> None:
        self._database, self._encoder = database, encoder
        self._file = database.path.with_name(SAVED)

    def load(self, build: Callable[[Arrays], T], *, key: str, least: int) -> tuple[int, T] | None:
        """The last change that the arrays have, and what is built from them; None if there is no file that fits.

        Args:
            build: Reads the arrays, which are in the file.
            key: That of the database.
            least: The change that the arrays must have.
        """
        try:
            with open(self._file, "rb", opener=_open_regular) as file:
                if hashlib.file_digest(file, _digest).hexdigest() != key:
                    raise ValueError("it is not the one that was saved last")
                file.seek(0)
                with np.load(file, allow_pickle=False) as arrays:
                    header = from_array(arrays["header"])
                    fits = header["fits"] == [_FORMAT, self._encoder] and header["change"] >= least
                    return (header["change"], build(arrays)) if fits else None
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever is wrong with a copy
            LOGGER.warning("%s cannot be read, so every entry is read instead: %s", self._file, error)
            return None

    def save(self, change: int, arrays: Arrays, *, key: str) -> None:
        """Replace the file, unless the database has another key by now; what fails is logged.

        Args:
            change: The last change that the arrays have.
            arrays: By name.
            key: That of the database before the first entry was read.
        """
        header = {"fits": [_FORMAT, self._encoder], "change": change}
        try:
            with home.replacing(self._file) as partial:
                with partial.open("r+b") as file:
                    np.savez(file, allow_pickle=False, header=as_array(header), **arrays)
                    file.seek(0)
                    new = hashlib.file_digest(file, _digest).hexdigest()
                with self._database.writing() as connection:
                    if not connection.execute("UPDATE counter SET arrays = ? WHERE arrays = ?", (new, key)).rowcount:
                        raise _Unfit
        except (_Unfit, home.WriteInProgress):
            pass  # the next start reads every entry, or what another process has saved
        except (OSError, DependencyFailed) as error:
            LOGGER.warning("%s cannot be written, so the next start reads every entry: %s", self._file, error)

    def delete(self) -> None:
        """Delete the file, which may have what was erased; one that is being written will not fit."""
        with self._database.writing() as connection:
            connection.execute(f"UPDATE counter SET {NEW_KEY}")
        self._file.unlink(missing_ok=True)


def _digest() -> Any:
    return hashlib.blake2b(digest_size=16)


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file: another kind, such as a pipe, would make the reader wait or run on."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is no regular file")
    return descriptor


class _Unfit(Exception):
    """The database has changed in a way that makes the arrays unfit."""
