"""Flags text in a registration that addresses a model instead of people, and text that is hidden, stuffed or too long.

A flag changes no score; it tells readers of the profile or the answer to review the registration, and what is flagged
is not handed to a model as a tool. The protection against prompt injection is the fence (`domain/text/fence.py`), which
does not depend on these flags. Most of it is found by a classifier (`mats.domain.capability.steering`); the patterns
here are for forms that are always the same: roles, tags, results, scores.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from mats.domain.capability.registration import Registration
from mats.domain.capability.steering import (
    DEED,
    DIRECTION,
    EXFILTRATION,
    ORDERS,
    PAYLOAD,
    decoded_forms,
    steering_in,
    without_mentions,
)
from mats.domain.text.fence import is_hidden, visible
from mats.domain.text.words import STOP_WORDS, every_text, read_parameters, words

RANK = "names its own score or rank"
ROLE = "poses as a message of another role"
FENCE = "contains the tags that delimit prompts"
RESULT = "poses as the result of a tool"

PATTERNS: Mapping[str, Sequence[str]] = {
    RANK: (
        r"\b(give|assign|award|rate|score|rank)\b (this|me|us|it|candidate)\b[^.]{0,30}"
        r"\b(100|hundred|maximum|full marks|10/10|highest|first|top|number one|number 1)\b",
        r"\b(relevance|score|rating|ranking)\s*[:=]\s*(100\b(?!\s*%)|10/10)",
        r"\b(i am|this is) (the )?(only|best|correct|right) (answer|choice|candidate|match|result)\b",
        r"(?<!\w)[\"']?s[\"']?\s*:\s*\[\s*\d+\s*,\s*\d+",
    ),
    ROLE: (
        r"<\|?\s*(im_start|im_end|endoftext|begin_of_text|start_header_id|eot_id|system|assistant)\s*\|?>",
        r"</?system[-_ ]?(reminder|message|prompt|override|note)s?>",
        r"\[/?(inst|sys)\]|<</?sys>>",
        r"(^|[\n\"'>])\s*(?-i:system|SYSTEM)\s*(prompt|message)?\s*:\s*\S",
        r"(^|[\n.!?\"'>])\s*(?-i:assistant|ASSISTANT)\s*(message)?\s*:\s*\S",
        r"[\"']role[\"']\s*:\s*[\"'](system|assistant|tool)[\"']",
        r"##\s*(system|assistant|instructions?)\s*:",
        r"[.!?]\s+(?-i:SYSTEM)\s*:\s*\S",
        r"\byou are (now|no longer) (a|an|the|in|free|bound)\b",
        r"\b(new|updated|real|actual|secret) (system )?(instructions?|prompt|message|objective)\s*(:|###|is\b)",
        r"\b(end|begin|start) of (the )?(system )?(prompt|instructions|candidates|registration)\b",
    ),
    FENCE: (
        r"<\s*/?\s*(candidates|registration)(\s[^<>]{0,40})?>",
        r"<\s*/\s*(candidate|requests?|instructions?|system_prompt|prompt)\s*>",
    ),
    RESULT: (
        r"<\s*/?\s*(tool_?results?|tool_?use|tool_?calls?|function_?(results?|calls?|response))\b",
        r"[\"'](tool_?result|tool_?use|tooluseid|tool_use_id|function_call)[\"']\s*:",
    ),
    EXFILTRATION: (r"!\[[^\]]{0,60}\][(]https?://[^)\s]{1,200}[?&]\w{1,20}=(\{|<|\$|%7b|(?-i:[A-Z_]{4,})[)])",),
    PAYLOAD: (
        r"\beval\s*[(]\s*(atob|base64\w*)\s*[(][^)]{16,}",
        r"\bbase64\s+(-d|--decode)\b[^|]{0,20}\|\s*(ba|z)?sh\b",
        r"(<!--|\[//\]:|display:\s*none)[^>]{0,60}\b(assistant|model|ai|llm|agent|claude|chatgpt)\b\s*[:,]",
    ),
}


STUFFED = "repeats a word too often (keyword stuffing)"
HIDDEN = "contains hidden characters"
BIDI = "contains bidirectional control characters"
LONG = "is far longer than a description"

CLASSES: Mapping[str, str] = {
    ORDERS: "orders", RANK: "orders", ROLE: "orders", FENCE: "orders", RESULT: "orders", EXFILTRATION: "exfiltration",
    DIRECTION: "direction", DEED: "deed", PAYLOAD: "hidden", STUFFED: "stuffing", HIDDEN: "hidden", BIDI: "hidden",
    LONG: "length",
}  # fmt: skip
"""The class of each reason, in the order in which reasons are given."""

_LONG = 20_000  # Characters of all text together: descriptors of hundreds of operations stay below
_STUFFED_SHARE, _STUFFED_COUNT = 0.25, 12
"""A content word is stuffed if it is a quarter of all content words and occurs 12 times."""

_SHORT, _REMEMBERED = 500, 16_384  # Texts of at most so many characters are remembered, and how many of them: some 8 MB

_WORD = r"\b"
_GROUP = re.compile(r"\((?!\?)")


def _any_of(patterns: Sequence[str], flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """One pattern, without the time for capturing; those that begin with a word are tried at words only."""
    whole = [_GROUP.sub("(?:", pattern) for pattern in patterns]
    at_words = "|".join(pattern.removeprefix(_WORD) for pattern in whole if pattern.startswith(_WORD))
    elsewhere = [pattern for pattern in whole if not pattern.startswith(_WORD)]
    return re.compile("|".join([*([f"{_WORD}(?:{at_words})"] if at_words else []), *elsewhere]), flags)


_COMPILED = {reason: _any_of(patterns, re.IGNORECASE) for reason, patterns in PATTERNS.items()}
_ANY = _any_of(
    [
        re.sub(r"(?<!\\)[A-Z]", lambda c: c[0].lower(), each.replace("(?-i:", "(?:"))
        for e in PATTERNS.values()
        for each in e
    ]
)
"""Every pattern, for text in lower case: a tenth of the time of ignoring case."""
_UNQUOTED = frozenset({RANK, ROLE})  # Reasons whose passages a text may quote as an example of an attack
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_WIDTHLESS = frozenset("\u200b\u2060\ufeff\u00ad")
_ORDINARY = _WIDTHLESS | frozenset("\u200c\u200d\ufe0e\ufe0f\u200e\u200f\u061c")
"""Joiners, emoji presentation, soft hyphens and such: common in honest text, but still hidden from models."""
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f")  # A region's flag, which is spelled with tags
_BROKEN_UP = 12  # From this count on, zero-width characters are taken as an attempt to split words


WRITTEN = "written"  # Where a finding is that is in the writer's text


class Finding(NamedTuple):
    """A reason to review a registration, with the attribute and the characters of it that gave the reason.

    In an attribute that is no text, they are those of its JSON. It quotes nothing: a model may read it.
    """

    reason: str
    where: str = ""
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        place = f": {self.where} {self.start}-{self.end}" if self.where else ""
        return f"{self.reason} [{CLASSES[self.reason]}{place}]"


def findings(registration: Registration, written: Sequence[str] = ()) -> tuple[Finding, ...]:
    """The reasons to review a registration, in a fixed order, each once; empty if there are none.

    `written` is the writer's text, which an injected registration may have influenced.
    """
    attributes = {**registration.item(), WRITTEN: list(written)}
    texts = {where: list(every_text(value)) for where, value in attributes.items()}
    first_in = {text: where for where, those in reversed(texts.items()) for text in those}
    found: dict[str, Finding] = {}
    for text, where in first_in.items():
        for reason, piece in _search_short(text) if len(text) <= _SHORT else _search(text[:_LONG]):
            found.setdefault(reason, _place(reason, where, attributes[where], piece))
    if _is_stuffed(registration):
        found[STUFFED] = Finding(STUFFED)
    every = [text for those in texts.values() for text in those]
    hidden = Counter(c for text in every if not text.isascii() for c in _FLAG.sub("", text) if is_hidden(c))
    if _has_hidden(hidden):
        found[HIDDEN] = Finding(HIDDEN)
    if hidden.keys() & _BIDI:
        found[BIDI] = Finding(BIDI)
    if sum(map(len, every)) > _LONG:
        found[LONG] = Finding(LONG)
    return tuple(found[reason] for reason in CLASSES if reason in found)


def _place(reason: str, where: str, value: Any, piece: str) -> Finding:
    whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    start = whole.find(piece)
    return Finding(reason, where, start, start + len(piece)) if start >= 0 else Finding(reason, where, 0, len(whole))


def _search(text: str) -> Iterable[tuple[str, str]]:
    """The reasons in a text, each once, with the part of the text that is the reason."""
    found: dict[str, str] = {}
    for form in dict.fromkeys(visible_forms(text)):
        _search_visible(form, found)
    for decoded, start, end in decoded_forms(text[:_LONG]):
        within: dict[str, str] = {}
        _search_visible(visible(decoded), within)
        if within or _CODE.search(decoded):
            found.setdefault(PAYLOAD, text[start:end])
    return tuple(found.items())


def _search_visible(text: str, found: dict[str, str]) -> None:
    unquoted = without_mentions(text)
    if _ANY.search(text.lower()):
        for reason, pattern in _COMPILED.items():
            if match := pattern.search(unquoted if reason in _UNQUOTED else text):
                found.setdefault(reason, match[0])
    for reason, start, end in steering_in(unquoted):
        found.setdefault(reason, text[start:end])


_search_short = lru_cache(_REMEMBERED)(_search)
"""The registrations of a document repeat each other: names and descriptions of parameters, schemas, scopes."""
_CODE = re.compile(
    r"(?:\b(?:curl|wget|powershell)\s|fetch\(|eval\(|document\.cookie)[^\n]{0,60}https?://", re.IGNORECASE
)


def _has_hidden(hidden: Counter[str]) -> bool:
    """True if there are hidden characters that honest text does not use, or more than it would use."""
    selectors = {c: count for c, count in hidden.items() if "\U000e0100" <= c <= "\U000e01ef"}
    if hidden.keys() - selectors.keys() - _ORDINARY - _BIDI:
        return True
    return any(count >= _BROKEN_UP for count in (sum(selectors.values()), *(hidden[c] for c in _WIDTHLESS)))


def visible_forms(text: str) -> Iterator[str]:
    """The text without hidden characters: on one line as a reranker reads it, and line by line.

    Line by line for the patterns of roles. Runs of spaces are collapsed to bound the time of the patterns.
    """
    seen = text if text.isascii() else unicodedata.normalize("NFKC", "".join(c for c in text if not is_hidden(c)))
    seen = seen[:_LONG]
    yield visible(seen)
    if seen.isascii() and seen.isprintable():
        return  # it is one line
    yield "\n".join(" ".join(line.split()) for line in seen.splitlines() if line.strip())


def _is_stuffed(registration: Registration) -> bool:
    """True if a word is stuffed in the descriptive text, or in the text of the parameters."""
    about = f"{registration.name} {registration.description} {' '.join((*registration.tags, *registration.examples))}"
    parameters = " ".join(read_parameters(registration.input_schema, registration.descriptor).texts)
    # lists of values repeat words, hence the higher share
    return _is_repetitive(about, _STUFFED_SHARE) or _is_repetitive(parameters, 2 * _STUFFED_SHARE)


def _is_repetitive(text: str, share: float) -> bool:
    said = [word for word in words(text) if word not in STOP_WORDS]
    most = Counter(said).most_common(1)
    return bool(most) and most[0][1] >= max(_STUFFED_COUNT, share * len(said))
