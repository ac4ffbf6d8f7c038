"""The candidates as a reranker reads them: one line of limited size each.

Untrusted text can neither leave nor imitate a line or a field: brackets of tags, separators and line breaks are
replaced, hidden characters removed.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache

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


SEPARATOR = " | "  # Stands between the fields of a line
_MARKS: Mapping[str, str] = {
    "/": "|¦ǀ׀।∣│┃❘❙❚⎪⏐丨〡ᅵ‖∥║⏽⎜⎟⎢⎥⎮⎸⎹┆┇┊┋╎╏╽╿▏▕⸽⸾𝄀⁞⦀⦙⦚⫼⫾⫿ˈˌ",
    "(": "<‹⟨〈❮❰⪻≺⧼«《",
    ")": ">›⟩〉❯❱⪼≻⧽»》",
    "+": "&",
}
"""What a model may take for a separator, or for the bracket of a tag, and what stands for it in fields."""
_PLAIN = {ord(mark): plain for plain, marks in _MARKS.items() for mark in marks}
_IN_FIELDS = _PLAIN | {
    code: normal.translate(_PLAIN)
    for first, last in ((0x2000, 0x3400), (0xFE00, 0xFFF0))  # narrow, wide, vertical and other forms of these
    for code in range(first, last)
    if code not in _PLAIN and not _PLAIN.keys().isdisjoint(map(ord, normal := unicodedata.normalize("NFKC", chr(code))))
}


def field_text(text: str) -> str:
    """Visible text as a field of a line: without separators, brackets of tags and line breaks."""
    return visible(text).translate(_IN_FIELDS)


_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\sA-Za-z0-9]")


def tokens(text: str) -> int:
    """More tokens than tokenizers of language models make of the text: see docs/decisions/0007.

    Four letters of a word, two capitals or digits, and every other character of ASCII count one; others their bytes.
    """
    return sum(map(_tokens_of, _PIECE.findall(text)))


def _tokens_of(piece: str) -> int:
    if not piece.isascii():
        return size(piece)
    return 1 + (len(piece) - 1) // (4 if piece[-1].islower() else 2)


def truncate(text: str, room: int) -> str:
    """The longest prefix of whole words in at most `room` tokens; truncated text ends in an ellipsis.

    If whole words would fill less than half of the room, the last one is cut.
    """
    if tokens(text) <= room:
        return text
    left, end = room - tokens("…"), 0
    for piece in _PIECE.finditer(text):
        left -= _tokens_of(piece[0])
        if left < 0:
            break
        end = piece.end()
    cut = text[:end]
    space = cut.rfind(" ")
    if not text[end:].startswith(" ") and tokens(cut[: max(0, space)]) * 2 > room:
        cut = cut[:space]
    cut = cut.rstrip(" ,;:…")
    return f"{cut}…" if cut else ""


_READ_CHARACTERS = 1_000  # Characters read of each text of a card, hidden ones included
_READ_KEYWORDS = 40
_CACHED = 2_048  # Cards kept in memory; candidates are often those of earlier queries
_NAME, _TYPES, _PROVIDER, _EXAMPLE, _NEGATIVE, _KEYWORDS, _INPUTS, _SKILLS, _FACTS = 24, 14, 8, 18, 24, 10, 28, 30, 14
_WRITTEN, _WRITTEN_WITH_ACTION = 130, 45
_DESCRIPTION, _DESCRIPTION_OF_SKILL = 42, 82
"""The most tokens of each field: none takes another's."""
CARD_TOKENS = 310  # The most tokens of one candidate in a rerank request, with its labels: docs/decisions/0007


def cards(profiles: Sequence[Profile]) -> str:
    """The candidates, one to a line, numbered from 1 in the order given.

    Each field has its own limit in tokens, so that no text can displace another.
    """
    return "\n".join(card(n, profile) for n, profile in enumerate(profiles, start=1))


def card(number: int, profile: Profile) -> str:
    """One candidate as a line of at most `CARD_TOKENS`.

    Labelled fields stand between separators, which no text of a candidate contains.
    """
    return f"{number}{_without_number(profile)}"


@lru_cache(maxsize=_CACHED)
def _without_number(profile: Profile) -> str:
    head = f" {profile.kind} {truncate(field_text(profile.name) or '?', _NAME)}"
    return SEPARATOR.join([head, *(f"{label} {text}" for label, text in _fields(profile) if text)])


def _fields(profile: Profile) -> Iterator[tuple[str, str]]:
    """Labels and texts, each within its limit."""
    written, source = profile.enrichment, profile.source or SourceText()
    name, is_model = split_identifier(profile.name), _is_model(profile)
    inputs = _shorten(source.identifiers or source.parameter_names)
    has_skills = profile.kind is Kind.AGENT and bool(inputs)
    does = _does(profile, name)
    known = stems(f"{name} {does}")
    yield "type", truncate(field_text(", ".join(profile.type_tags)[:_READ_CHARACTERS]), _TYPES)
    if is_model and not profile.enriched:
        yield "info", truncate(_shorten(source.parameter_text), _FACTS)
    if not is_model and not stems(profile.provider) <= known:
        yield "by", truncate(field_text(profile.provider), _PROVIDER)
    yield "does", does
    yield "for", truncate(_first_that_fits(written.positive_examples, _EXAMPLE, or_cut=True), _EXAMPLE)
    yield "not", _first_that_fits(written.negative_examples, _NEGATIVE, or_cut=False)
    yield "keywords", _keywords(written.keywords, known)
    if not is_model:
        names = new_clauses(inputs, known)
        if has_skills:
            about = new_clauses(_shorten(source.parameter_text), known | stems(names))
            yield "info", truncate(": ".join(filter(None, (names, about))), _SKILLS)
        else:
            yield "takes", truncate(names, _INPUTS)


def _does(profile: Profile, name: str) -> str:
    """Summary and what the action adds to it, if it fits; else the owner's description; else the keywords."""
    written, source = profile.enrichment, profile.source or SourceText()
    if profile.enriched and (written.summary or written.action):
        summary = truncate(_shorten(written.summary), _WRITTEN)
        both = f"{summary} {new_clauses(_shorten(written.action), stems(f'{name} {summary}'))}".strip()
        return summary if summary and tokens(both) > _WRITTEN_WITH_ACTION else truncate(both, _WRITTEN)
    text = _shorten(source.description) or _shorten(", ".join(written.keywords))
    return truncate(text, _DESCRIPTION_OF_SKILL if profile.kind is Kind.SKILL else _DESCRIPTION)


def _keywords(keywords: Sequence[str], known: Set[str]) -> str:
    """The keywords that say something new and fit, each whole."""
    shown: list[str] = []
    for keyword in map(_shorten, keywords[:_READ_KEYWORDS]):
        if not stems(keyword) <= known and tokens(", ".join([*shown, keyword])) <= _KEYWORDS:
            shown.append(keyword)
    return ", ".join(shown)


def _is_model(profile: Profile) -> bool:
    """True if its entries are facts of a model, under names that all models share; some are filed as tools."""
    names = profile.source.parameter_names if profile.source else ""
    return profile.kind is Kind.MODEL or (names.startswith("domain ") and " functionality " in names)


def _shorten(text: str) -> str:
    return without_stock_phrases(field_text(redact_prose(text[:_READ_CHARACTERS])))


def _first_that_fits(texts: Sequence[str], most: int, *, or_cut: bool) -> str:
    """The first text of at most `most` tokens; if there is none, the first, to be cut, or nothing."""
    read = [_shorten(text) for text in texts]
    return next((text for text in read if 0 < tokens(text) <= most), read[0] if read and or_cut else "")
