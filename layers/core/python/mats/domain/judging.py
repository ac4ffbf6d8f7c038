"""What a reranker reads of each candidate, and how its reply is understood. Neither can fail."""

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mats.domain.capability import Kind
from mats.domain.fence import encoded, fitted, size, visible
from mats.domain.profile import Enrichment, Profile, SourceText
from mats.domain.text import first_object

CARD_BYTES = 240
"""What one candidate may take of a rerank request, in bytes of JSON: docs/decisions/0007."""

_LOOKED_AT = 1_000
"""Characters of a text that a card is made from, hidden ones included."""


def cards(profiles: Sequence[Profile], *, room: int = CARD_BYTES) -> str:
    """The candidates as a JSON array, one to a line, numbered from 1 in the order given.

    Each has its own room, so that none can crowd out another.
    """
    return "[" + ",\n".join(card(n, profile, room=room) for n, profile in enumerate(profiles, start=1)) + "]"


def card(number: int, profile: Profile, *, room: int = CARD_BYTES) -> str:
    """One candidate as JSON of at most `room` bytes, most telling first; its kind is the key of its name."""
    shown: dict[str, Any] = {"n": number}
    for key, text, most in _parts(profile):
        left = min(most, room - size(encoded({**shown, key: ""})))
        if text and left > 0 and (fit := fitted(visible(text[:_LOOKED_AT]), left)):
            shown[key] = fit
    return encoded(shown)


def _parts(profile: Profile) -> Iterator[tuple[str, str, int]]:
    """Key, text and the most bytes it may take."""
    written, source = profile.enrichment, profile.source or SourceText()
    yield str(profile.kind), visible(profile.name) or "?", 64
    yield "tags", ", ".join(profile.type_tags), 48
    yield "by", "" if profile.provider.lower() in profile.name.lower() else profile.provider, 24
    yield "does", _does(written, source, enriched=profile.enriched), 160 if profile.enriched else 200
    yield "for", "".join(written.positive_examples[:1]), 64
    yield "not", "".join(written.negative_examples[:1]), 48
    yield "takes", source.parameter_names, 48


def _does(written: Enrichment, source: SourceText, *, enriched: bool) -> str:
    """What it is for: as the writer put it, else the start of what its owner did, else whatever words there are."""
    spoken = f"{written.summary} {written.action}".strip() if enriched else source.description
    return spoken or source.description or ", ".join(written.keywords)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a reranker's reply says: scores in [0, 1] for a prefix of the candidates, and the type it inferred.

    `clipped` counts the scores that were out of range; `cut_off` says that the reply ended too early.
    `void` says why nothing could be used, and then there are no scores.
    """

    scores: tuple[float, ...] = ()
    type: str = ""
    clipped: int = 0
    cut_off: bool = False
    void: str = ""


_SCORES = re.compile(r'"s"\s*:\s*\[')
_TYPE = re.compile(r'"t"\s*:\s*"([^"\\]*)"')
_NUMBER = re.compile(r"\s*(-?\d{1,18}(?:\.\d{1,18})?)\s*(?:,|(?=\]))")
_CLOSED = re.compile(r"\s*\]")


def judgement(reply: str, count: int, *, ended_early: bool = False) -> Judgement:
    """What any string says of `count` candidates, as `{"t": type, "s": [count integers from 0 to 100]}`.

    A reply that was cut off keeps the scores that arrived whole. Any other wrong number of scores is void: nobody can
    say which score is whose.

    Args:
        reply: JSON, JSON somewhere in a text, or the beginning of either.
        count: How many candidates were to be judged.
        ended_early: The model said that it ran out of tokens.
    """
    found = first_object(reply)
    if found is None:
        return _beginning(reply, count)
    type_ = found.get("t")
    numbers = _numbers(found.get("s"))
    if numbers is None:
        return Judgement(void="the reply has no list of scores")
    cut_off = ended_early and len(numbers) < count
    if len(numbers) != count and not cut_off:
        return Judgement(void=f"{len(numbers)} scores for {count} candidates")
    return _scaled(numbers, type_ if isinstance(type_, str) else "", cut_off=cut_off)


def _numbers(scores: object) -> list[float] | None:
    """A list of finite numbers, also one that a model put into a string."""
    if isinstance(scores, str):
        try:
            scores = json.loads(scores)
        except (ValueError, RecursionError):
            return None
    if not isinstance(scores, list) or not all(_is_number(score) for score in scores):
        return None
    return scores


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _beginning(reply: str, count: int) -> Judgement:
    """The scores that arrived whole before a reply broke off; a number counts once something follows it."""
    start = _SCORES.search(reply)
    if start is None:
        return Judgement(void="the reply holds no judgement")
    numbers: list[float] = []
    position = start.end()
    while number := _NUMBER.match(reply, position):
        numbers.append(float(number[1]))
        position = number.end()
    closed = _CLOSED.match(reply, position) is not None
    if not numbers or len(numbers) > count or (closed and len(numbers) < count):
        return Judgement(void=f"{len(numbers)} scores for {count} candidates", cut_off=not closed)
    type_ = _TYPE.search(reply, 0, start.start())
    return _scaled(numbers, type_[1] if type_ else "", cut_off=len(numbers) < count)


def _scaled(numbers: Sequence[float], type_: str, *, cut_off: bool) -> Judgement:
    if not numbers:
        return Judgement(void="the reply ended before the first score", cut_off=cut_off)
    inside = [min(100, max(0, number)) for number in numbers]
    clipped = sum(kept != number for kept, number in zip(inside, numbers, strict=True))
    return Judgement(scores=tuple(n / 100 for n in inside), type=type_, clipped=clipped, cut_off=cut_off)


def shuffled(count: int, seed: str) -> list[int]:
    """The positions 0 to count - 1 in an order that only the seed decides."""
    return sorted(range(count), key=lambda position: hashlib.sha256(f"{position} {seed}".encode()).digest())


def known_type(said: str, profiles: Sequence[Profile]) -> str | None:
    """The capability type a judge named, if it is a kind or a tag of one of the candidates; case does not matter."""
    wanted = said.strip().lower()
    tags: Collection[str] = {tag for profile in profiles for tag in profile.type_tags}
    return next((name for name in (*Kind, *sorted(tags)) if name.lower() == wanted), None)
