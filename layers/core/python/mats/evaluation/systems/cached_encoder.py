"""Document vectors kept on disk by what was encoded, so that a second evaluation need not wait for them."""

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
    from mats.adapters.bedrock.models import Bedrock


class CachedEncoder:
    """An encoder that remembers documents. Queries are always encoded: they are what is measured."""

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder = encoder
        folder.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(folder / f"vectors-{encoder.name}.db", isolation_level=None)
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL)")

    @property
    def name(self) -> str:
        """The encoder's own."""
        return self._encoder.name

    @property
    def dimension(self) -> int:
        """The encoder's own."""
        return self._encoder.dimension

    def encode_query(self, text: str) -> Vector:
        """Not remembered."""
        return self._encoder.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """From the cache where it is there."""
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        known = {key: vector for key in keys if (vector := self._known(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        vectors = self._encoder.encode_documents(list(missing.values()))
        made = {key: vector for key, vector in zip(missing, vectors, strict=True) if vector is not None}
        self._kept.executemany(
            "INSERT OR IGNORE INTO vectors VALUES (?, ?)", [(key, vector.tobytes()) for key, vector in made.items()]
        )
        known |= made
        return [known.get(key) for key in keys]

    def _known(self, key: bytes) -> Vector | None:
        row = self._kept.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
        return None if row is None else array("f", row[0])


def cached_encoder(settings: Settings, models: "Bedrock | None" = None) -> Encoder | None:
    """The encoder of these settings, remembering documents; none if there is none. One on Bedrock is of `models`."""
    encoder = bootstrap.encoder(settings, models)
    return CachedEncoder(encoder, settings.cache or bootstrap.user_cache()) if encoder else None
