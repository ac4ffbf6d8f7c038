"""Replies of models kept on disk, so that a run can be resumed and repeated for free."""

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mats import bootstrap
from mats.domain.errors import StorageUnusable
from mats.ports import Kept
from mats.settings import Settings

_WAIT_S = 60
"""For another process that is writing."""


class SqliteReplies:
    """Keeps replies in one file by the SHA-256 of the request's JSON. Several processes may share the file."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises:
            StorageUnusable: it cannot be opened or is something else.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._kept = sqlite3.connect(path, isolation_level=None, timeout=_WAIT_S, check_same_thread=False)
            self._kept.execute(
                "CREATE TABLE IF NOT EXISTS replies"
                " (request BLOB PRIMARY KEY, model TEXT NOT NULL, reply TEXT NOT NULL, took_ms REAL NOT NULL)"
            )
        except (OSError, sqlite3.Error) as error:
            raise StorageUnusable(
                f"replies cannot be kept in {path}: {error}; move it away or set MATS_CACHE"
            ) from error
        self._turn = threading.Lock()

    def get(self, request: Mapping[str, Any]) -> Kept | None:
        """What was answered to exactly this request."""
        with self._turn:
            row = self._kept.execute(
                "SELECT reply, took_ms FROM replies WHERE request = ?", (_key(request),)
            ).fetchone()
        return None if row is None else Kept(json.loads(row[0]), row[1])

    def keep(self, request: Mapping[str, Any], kept: Kept) -> None:
        """Written through to the disk before this returns; a reply that is already there stays."""
        row = (_key(request), str(request["modelId"]), json.dumps(kept.reply), kept.took_ms)
        with self._turn:
            self._kept.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", row)

    def close(self) -> None:
        """Let go of the file."""
        with self._turn:
            self._kept.close()


def _key(request: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode()).digest()


def kept_by(settings: Settings) -> SqliteReplies:
    """The replies of these settings' cache folder.

    Raises:
        StorageUnusable: the file cannot be opened.
    """
    return SqliteReplies((settings.cache or bootstrap.user_cache()) / "replies.db")
