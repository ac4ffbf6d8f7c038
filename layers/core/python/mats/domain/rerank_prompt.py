"""The candidates as a reranker reads them: one card of limited size each."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from mats.domain.fence import encode_json, size, truncate_json, visible
from mats.domain.profile import Profile, SourceText

CARD_BYTES = 240
"""Limit of one candidate in a rerank request, in bytes of JSON: docs/decisions/0007."""

_READ_CHARACTERS = 1_000
"""Characters read of each text of a card, hidden ones included."""


def cards(profiles: Sequence[Profile], *, room: int = CARD_BYTES) -> str:
    """The candidates as a JSON array, one to a line, numbered from 1 in the order given.

    Each has its own limit in bytes, so that none can displace another.
    """
    return "[" + ",\n".join(card(n, profile, room=room) for n, profile in enumerate(profiles, start=1)) + "]"


def card(number: int, profile: Profile, *, room: int = CARD_BYTES) -> str:
    """One candidate as JSON of at most `room` bytes, most informative first; its kind is the key of its name."""
    shown: dict[str, Any] = {"n": number}
    for key, text, most in _parts(profile):
        left = min(most, room - size(encode_json({**shown, key: ""})))
        if text and left > 0 and (fit := truncate_json(visible(text[:_READ_CHARACTERS]), left)):
            shown[key] = fit
    return encode_json(shown)


def _parts(profile: Profile) -> Iterator[tuple[str, str, int]]:
    """Key, text and the most bytes it may take."""
    written, source = profile.enrichment, profile.source or SourceText()
    does = f"{written.summary} {written.action}".strip() if profile.enriched else source.description
    yield str(profile.kind), visible(profile.name) or "?", 64
    yield "tags", ", ".join(profile.type_tags), 48
    yield "by", "" if profile.provider.lower() in profile.name.lower() else profile.provider, 24
    yield "does", does or source.description or ", ".join(written.keywords), 160 if profile.enriched else 200
    yield "for", "".join(written.positive_examples[:1]), 64
    yield "not", "".join(written.negative_examples[:1]), 48
    yield "takes", source.parameter_names, 48


def shuffle_positions(count: int, seed: str) -> list[int]:
    """The positions 0 to count - 1 in an order that only the seed decides."""
    return sorted(range(count), key=lambda position: hashlib.sha256(f"{position} {seed}".encode()).digest())
