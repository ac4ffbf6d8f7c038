"""The candidates as a reranker reads them: one line of limited size each.

Untrusted text can neither leave nor imitate a line or a field: brackets of tags, separators and line breaks are
replaced, hidden characters removed.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from mats.domain.capability.capability import Kind
from mats.domain.profile.profile import Profile, SourceText
from mats.domain.text.fence import size, visible
from mats.domain.text.redaction import redact_prose
from mats.domain.text.words import split_identifier, stems

_NOUN = r"(?:api |mcp )?(?:skill|tool|api|agent|function|method|endpoint|service|plugin|server)"
_IT = rf"(?:(?:this|the) {_NOUN}|it)"
_USERS = r"(?:you|users?|the user|developers|agents|an agent)"
_WANT = rf"{_USERS} (?:wants?|needs?|asks?)(?: you)? to "
_STOCK = (
    rf"(?:also )?use (?:{_IT} )?(?:when|whenever|if) (?:{_WANT}|{_USERS} mentions? )",
    rf"{_IT} should be used (?:when|whenever|if) {_WANT}",
    rf"when(?:ever)? {_WANT}",
    rf"{_IT} (?:allows|enables|lets|helps) {_USERS} (?:to )?",
    rf"{_IT} (?:is|can be) used (?:by {_USERS} )?(?:to|for) ",
    rf"{_IT} (?:is designed to|provides the ability to|is able to) ",
    rf"use {_IT} to ",
    rf"(?:this is )?an? {_NOUN} (?:that|which|to) (?:(?:allows|enables|lets|helps) {_USERS} (?:to )?)?",
    rf"this {_NOUN} (?:will )?",
    r"(?:please |can you |could you |help me (?:to )?|(?:I want|I need|I'd like|I would like)(?: you)? to )+",
)
_STOCK_PHRASE = re.compile(rf"(?:(?<=[.!?;] )|^(?:- )?)(?:{'|'.join(_STOCK)})", re.IGNORECASE)
"""Only where a sentence begins, so that what stands before, such as `do not`, cannot lose its object."""
_CLAUSE_ENDS = re.compile(r"(?<=[.;:,!?])\s+|(?<=[。！？；，])")


def without_stock_phrases(text: str) -> str:
    """The text without openings of English sentences that say nothing, such as `use this skill when you need to`."""
    return _STOCK_PHRASE.sub("", text).strip()


def new_clauses(text: str, known: Iterable[str]) -> str:
    """The clauses of a text of which at least half the content words are new; `known` are stems said before."""
    said, kept = set(known), []
    for clause in _CLAUSE_ENDS.split(text):
        has = stems(clause)
        if len(has - said) * 2 >= max(1, len(has)):
            kept.append(clause)
            said |= has
    return " ".join(kept).rstrip(",;:")


SEPARATOR = " | "
"""Stands between the fields of a line."""
_BARS = "|¦ǀ׀।∣│┃❘❙❚⎪⏐｜￨︱︳丨〡ㅣᅵ‖∥║⏽⎜⎟⎢⎥⎮⎸⎹┆┇┊┋╎╏▏▕⸾⼁𝄀"
_IN_FIELDS = str.maketrans(
    {"<": "‹", "＜": "‹", "﹤": "‹", ">": "›", "＞": "›", "﹥": "›", "&": "+"} | dict.fromkeys(_BARS, "/")
)
"""Replacements in fields: bars of all scripts, because a model may take any of them for the separator."""


def field_text(text: str) -> str:
    """Visible text as a field of a line: without separators, brackets of tags and line breaks."""
    return visible(text).translate(_IN_FIELDS)


def truncate(text: str, room: int) -> str:
    """The longest prefix of whole words in at most `room` bytes of UTF-8; truncated text ends in an ellipsis.

    If whole words would fill less than half of the room, the last one is cut.
    """
    if size(text) <= room:
        return text
    room -= len("…".encode())
    cut = text.encode()[: max(0, room)].decode("utf-8", "ignore")
    space = cut.rfind(" ")
    if not text[len(cut) :].startswith(" ") and space > len(cut) // 2:
        cut = cut[:space]
    cut = cut.rstrip(" ,;:…")
    return f"{cut}…" if cut else ""


CARD_BYTES = 260
"""Limit of one candidate in a rerank request, in bytes: docs/decisions/0007."""

_READ_CHARACTERS = 1_000
"""Characters read of each text of a card, hidden ones included."""
_CACHED = 2_048
"""Cards kept in memory; candidates are often those of earlier queries."""
_SHORTEST_CUT = 24
"""Bytes; a text that would be cut shorter is left out."""
_NAME, _TYPES, _PROVIDER, _DESCRIPTION, _WRITTEN, _EXAMPLE, _NEGATIVE, _INPUTS, _INFO, _FACTS = (
    64, 48, 32, 230, 160, 44, 56, 44, 120, 60,
)  # fmt: skip
"""The most bytes of each field; what a writer wrote says it in fewer than a description."""
_ROOM_OF_EXAMPLES, _ROOM_OF_INPUT_TEXTS = 200, 160
"""The most bytes of a card with examples and names of inputs, and with descriptions of inputs."""


class _Field(NamedTuple):
    label: str
    text: str
    most: int
    """The most bytes it may take."""
    until: int = CARD_BYTES
    """The most bytes of the card with it."""
    whole: bool = False
    """Left out if it does not fit, because half of it could say the opposite."""


def cards(profiles: Sequence[Profile], *, room: int = CARD_BYTES) -> str:
    """The candidates, one to a line, numbered from 1 in the order given.

    Each has its own limit in bytes, so that none can displace another.
    """
    return "\n".join(card(n, profile, room=room) for n, profile in enumerate(profiles, start=1))


def card(number: int, profile: Profile, *, room: int = CARD_BYTES) -> str:
    """One candidate as a line of at most `room` bytes, most informative first.

    Labelled fields stand between separators, which no text of a candidate contains.
    """
    return f"{number}{_without_number(profile, room, size(str(number)))}"


@lru_cache(maxsize=_CACHED)
def _without_number(profile: Profile, room: int, taken: int) -> str:
    """A card without its number, which takes so many bytes."""
    line = f" {profile.kind} {truncate(field_text(profile.name) or '?', _NAME)}"
    for field in _fields(profile):
        start = f"{SEPARATOR}{field.label} "
        left = min(field.most, min(room, field.until) - taken - size(line) - size(start))
        fits = size(field.text) <= left
        if field.text and (fits or (left >= _SHORTEST_CUT and not field.whole)):
            line += start + truncate(field.text, left)
    return line


def _fields(profile: Profile) -> Iterator[_Field]:
    written, name = profile.enrichment, split_identifier(profile.name)
    most = _WRITTEN if profile.enriched else _DESCRIPTION
    does = truncate(_does(profile, name), most)
    provider = "" if profile.provider.lower() in profile.name.lower() else profile.provider
    example = _first_that_fits(written.positive_examples, _EXAMPLE, or_cut=True)
    negative = _first_that_fits(written.negative_examples, _NEGATIVE, or_cut=False)
    yield _Field("type", field_text(", ".join(profile.type_tags)[:_READ_CHARACTERS]), _TYPES)
    yield _Field("by", field_text(provider), _PROVIDER)
    if _is_model(profile) and profile.source:
        yield _Field("info", _shorten(profile.source.parameter_text), _FACTS)
    yield _Field("does", does, most)
    yield _Field("for", example, _EXAMPLE, _ROOM_OF_EXAMPLES)
    yield _Field("not", negative, _NEGATIVE, _ROOM_OF_EXAMPLES, whole=True)
    if not _is_model(profile) and profile.source:
        yield from _inputs(profile, profile.source, f"{name} {does}")


def _does(profile: Profile, name: str) -> str:
    """Summary and what the action adds to it; else the owner's description; else the keywords."""
    written, source = profile.enrichment, profile.source or SourceText()
    summary, action = (_shorten(text) if profile.enriched else "" for text in (written.summary, written.action))
    does = f"{summary} {new_clauses(action, stems(f'{name} {summary}'))}".strip()
    return does or _shorten(source.description) or _shorten(", ".join(written.keywords))


def _inputs(profile: Profile, source: SourceText, said: str) -> Iterator[_Field]:
    """Inputs of a tool or skill, or the skills of an agent, without clauses of which most words are said already."""
    if not source.parameter_names and not source.parameter_text:
        return
    known = stems(said)
    names = new_clauses(_shorten(source.parameter_names), known)
    about = new_clauses(_shorten(source.parameter_text), known | stems(names))
    if profile.kind is Kind.AGENT:
        yield _Field("info", ": ".join(filter(None, (names, about))), _INFO)
    else:
        yield _Field("takes", names, _INPUTS, _ROOM_OF_EXAMPLES)
        yield _Field("info", about, _INPUTS, _ROOM_OF_INPUT_TEXTS)


def _is_model(profile: Profile) -> bool:
    """Whether its entries are facts of a model, under names that all models share; some are filed as tools."""
    names = profile.source.parameter_names if profile.source else ""
    return profile.kind is Kind.MODEL or (names.startswith("domain ") and " functionality " in names)


def _shorten(text: str) -> str:
    return without_stock_phrases(field_text(redact_prose(text[:_READ_CHARACTERS])))


def _first_that_fits(texts: Sequence[str], most: int, *, or_cut: bool) -> str:
    """The first text of at most `most` bytes; if there is none, the first, which is then cut, or nothing."""
    read = [_shorten(text) for text in texts]
    return next((text for text in read if 0 < size(text) <= most), read[0] if read and or_cut else "")


def shuffle_positions(count: int, seed: str) -> list[int]:
    """The positions 0 to count - 1 in an order that only the seed decides."""
    return sorted(range(count), key=lambda position: hashlib.sha256(f"{position} {seed}".encode()).digest())
