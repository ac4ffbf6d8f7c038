"""The receipt of an answer, with which its caller can report outcomes."""

import struct
from collections.abc import Collection
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.domain.ranking.ranking import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One answer.

    `verdict` is None in a receipt that was stored before the candidates were ranked: `shown` then has all of them, in
    the order of retrieval.
    """

    query_id: str
    text: str
    """The query; empty if queries are not logged as text."""
    caller: str
    """Who asked: the ARN of a principal, the subject of a token, or `local`."""
    audiences: frozenset[str]
    at: str
    """ISO 8601 in UTC."""
    shown: tuple[Id, ...]
    """The results that the caller got, best first."""
    verdict: Verdict | None = None
    nearest: Id | None = None
    """The best candidate, shown or not."""
    relevance: float | None = None
    """That of the best candidate, 0 to 1."""
    narrowed: bool = False
    """Whether the query had filters."""
    encoder: str = ""
    """Name of the encoder of the vector; empty without a vector."""
    vector: bytes | None = None
    """Of the query, as `pack_vector` makes it."""


def pack_vector(vector: Collection[float]) -> bytes:
    """The components as float16, little-endian: half the size, and enough for a cosine."""
    return struct.pack(f"<{len(vector)}e", *vector)


def unpack_vector(packed: bytes) -> tuple[float, ...]:
    """The components of a packed vector."""
    return struct.unpack(f"<{len(packed) // 2}e", packed)
