"""A cache of document vectors on disk, so that a second evaluation need not encode them again."""

import hashlib
import sqlite3
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mats import bootstrap
from mats.ports import Encoder, Vector
from mats.settings import Settings

if TYPE_CHECKING:
    from mats.adapters.bedrock.factory import Bedrock


class CachedEncoder:
    """An encoder that caches documents, but not queries, whose encoding is measured."""

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder = encoder
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(folder / f"vectors-{encoder.name}.db", isolation_level=None)
        self._connection.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL)")

    @property
    def name(self) -> str:
        return self._encoder.name

    @property
    def dimension(self) -> int:
        return self._encoder.dimension

    def encode_query(self, text: str) -> Vector:
        return self._encoder.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        vectors = {key: vector for key in keys if (vector := self._get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        encoded = self._encoder.encode_documents(list(missing.values()))
        new = {key: vector for key, vector in zip(missing, encoded, strict=True) if vector is not None}
        self._connection.executemany(
            "INSERT OR IGNORE INTO vectors VALUES (?, ?)", [(key, vector.tobytes()) for key, vector in new.items()]
        )
        vectors |= new
        return [vectors.get(key) for key in keys]

    def _get(self, key: bytes) -> Vector | None:
        row = self._connection.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
        return None if row is None else array("f", row[0])


def cached_encoder(settings: Settings, bedrock: "Bedrock | None" = None) -> Encoder | None:
    """The encoder of the settings; None if they say `none`. Titan is made by `bedrock`."""
    encoder = bootstrap.load_encoder(settings, bedrock)
    return CachedEncoder(encoder, settings.cache or bootstrap.user_cache()) if encoder else None
