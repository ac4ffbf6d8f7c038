"""A registry that has answered requests can be restored."""

import sqlite3
from contextlib import closing
from pathlib import Path

from mats.adapters.sqlite.backup import restore
from mats.bootstrap.local import LocalSystem
from mats.domain.learning.outcome import pack_vector


def test_vectors_of_requests_are_restored(local: LocalSystem, tmp_path: Path):
    receipts = ("a" * 32, pack_vector([0.1, -0.2, 0.97])), ("b" * 32, pack_vector([-0.5, 0.5, 0.7]))
    with closing(sqlite3.connect(tmp_path / "home" / "mats.db")) as connection, connection:
        connection.executemany(
            "INSERT INTO receipts VALUES (?, '', '', '[]', '', '[]', '', '', 0.5, 0, '[]', 'mini', ?, 1)", receipts
        )
    restore(tmp_path / "home" / "mats.db", tmp_path / "other" / "mats.db", stamp="now")
    with closing(sqlite3.connect(tmp_path / "other" / "mats.db")) as connection:
        assert connection.execute("SELECT query_id, vector FROM receipts ORDER BY query_id").fetchall() == [*receipts]
