"""Grounding: URLs, identifiers and numbers of an enrichment must occur in the registration.

A sentence of `summary` or `action`, or an entry of a list, with an ungrounded token is dropped whole, because deleting
the token alone would change the meaning. If a registration is only a name, `summary` and `action` may use only words of
the name; keywords and examples may be inferred from it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from mats.domain.capability import Kind
from mats.domain.profile import Enrichment
from mats.domain.registration import Registration
from mats.domain.text import STOP_WORDS, clip, every_text, split_identifier, stem, words

_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\.\w\.)\s+|(?<=[。！？])")
"""Not after `e.g.` or `i.e.`, which do not end a sentence."""
_TOKEN = re.compile(r"[^\s,;!?\"'“”‘’`()\[\]{}<>|\\]+")
_URL = re.compile(r"\w+://|www\.|[^\s@]+@[^\s@]+\.\w", re.IGNORECASE)
_IDENTIFIER = re.compile(
    r"\w_\w"  # get_user
    r"|^[a-z]{2,}[A-Z][a-z]|^(?:[A-Z][a-z]+){3}"  # getUser, GetUserName; not PhD, mRNA, JavaScript
    r"|\w::\w|^[/~.]+/?\w"  # std::sort, /v1/users
    r"|^@\w|^#\w"  # a handle, an anchor
    r"|\w{2}\.\w{2}|\w\.\w{2,}/|\w@\w"  # com.acme, report.pdf, t.co/x, root@localhost
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_GROUPING = re.compile(r",(?=\d{3}(?!\d))")
_SAYS_LITTLE = frozenset(
    stem(word)
    for word in (
        "a agent api capability call data do does for function get given gives handle help let make model perform "
        "performs process provide provides related request result run service skill something support task tool use "
        "used user using work"
    ).split()
)
"""Words allowed in the summary of a bare name although the name does not contain them."""
_READABLE = re.compile(r"(?=.*[aeiouy])[a-z]{3,}|[^\W\d_a-z]{2,}")
_NOTE = 80


@dataclass(frozen=True, slots=True)
class Evidence:
    """The tokens, normalized words and numbers of a registration that claims are checked against."""

    tokens: frozenset[str]
    spoken: str
    numbers: frozenset[str]

    @classmethod
    def of(cls, registration: Registration) -> Self:
        """Every name and text of a registration."""
        text = "\n".join(every_text(registration.item()))
        tokens = frozenset(_bare(token).lower() for token in _TOKEN.findall(text))
        return cls(tokens, f" {_normalize(text)} ", frozenset(_numbers(text)))

    def ungrounded_tokens(self, text: str) -> Iterator[str]:
        """URLs, identifiers and numbers of a text that do not occur in the registration."""
        for token in map(_bare, _TOKEN.findall(text)):
            if token and not self._contains(token):
                yield token
        yield from (number for number in _numbers(text) if number not in self.numbers)

    def _contains(self, token: str) -> bool:
        if _NUMBER.fullmatch(token):
            return True  # numbers are checked separately
        link = _URL.search(token) is not None
        mixed = any(map(str.isdigit, token)) and any(map(str.isalpha, token))  # order numbers, versions, hashes
        if not (link or mixed or _IDENTIFIER.search(token)):
            return True
        if token.lower() in self.tokens:
            return True
        return not link and any(f" {_normalize(form)} " in self.spoken for form in (token, token.removesuffix("s")))


def _bare(token: str) -> str:
    """A token without the punctuation around it."""
    return token.strip(".:…-–—*").removesuffix("/")


def _normalize(text: str) -> str:
    """Words and numbers of a text, names taken apart: `getUser_v2` and `get user v2` are alike."""
    return " ".join(words(split_identifier(text)))


def _numbers(text: str) -> Iterator[str]:
    """The numbers of a text as digits, without grouping and trailing zeros."""
    for number in _NUMBER.findall(text):
        digits = _GROUPING.sub("", number)
        yield digits.rstrip("0").rstrip(".") if "." in digits else digits


@dataclass(frozen=True, slots=True)
class Grounded:
    """The grounded part of an enrichment, and a note for each dropped text."""

    enrichment: Enrichment
    notes: tuple[str, ...] = ()


def ground(written: Enrichment, registration: Registration) -> Grounded:
    """The enrichment without sentences and entries that the registration does not support."""
    evidence, notes = Evidence.of(registration), list[str]()

    def is_grounded(field: str, text: str) -> bool:
        invented = list(dict.fromkeys(evidence.ungrounded_tokens(text)))
        if invented:
            notes.append(_note(field, text, f"{', '.join(invented)} is not in the registration"))
        return not invented

    claims: dict[str, str] = {}
    for field in ("summary", "action"):
        sentences = filter(None, _SENTENCE_END.split(getattr(written, field)))
        claims[field] = " ".join(sentence for sentence in sentences if is_grounded(field, sentence))
    for field, text in claims.items():
        if beyond := _beyond_a_bare_name(text, registration):
            notes.append(_note(field, text, beyond))
            claims[field] = ""
    lists = {
        field: tuple(entry for entry in getattr(written, field) if is_grounded(field, entry))
        for field in ("keywords", "positive_examples", "negative_examples")
    }
    return Grounded(Enrichment.model_validate({**claims, **lists}), tuple(notes))


def _note(field: str, text: str, why: str) -> str:
    return f"dropped from {field}: {clip(text, _NOTE)!r} ({clip(why, 2 * _NOTE)})"


def is_bare(registration: Registration) -> bool:
    """Whether the name is the only text about the capability's purpose."""
    said = registration.item().keys() & {
        "tags", "type_tags", "input_schema", "examples", "negative_examples", "descriptor",
    }  # fmt: skip
    described = _normalize(registration.description) not in ("", _normalize(registration.name))
    return not said and not described


def _beyond_a_bare_name(text: str, registration: Registration) -> str:
    """Why a claim goes beyond a registration that is only a name; empty if it does not."""
    if not text or not is_bare(registration):
        return ""
    if is_opaque(registration.name):
        return "only the name is known, and it is not readable"
    names = f"{registration.name} {registration.provider}"
    known = {stem(word) for word in words(f"{split_identifier(names)} {names}")} | {stem(kind) for kind in Kind}
    said = [word for word in words(text) if word not in STOP_WORDS]
    if all(stem(word) in _SAYS_LITTLE for word in said):
        return "it has no content words"
    beyond = next((word for word in said if stem(word) not in known | _SAYS_LITTLE), "")
    return f"only the name is known, and it does not contain {beyond}" if beyond else ""


def is_opaque(name: str) -> bool:
    """Whether a name is unreadable: no pronounceable word, or just one beside fragments, as in `xq7_proc`."""
    said = words(split_identifier(name))
    readable = sum(_READABLE.fullmatch(word) is not None for word in said)
    return readable == 0 or (readable == 1 and len(said) > 1)
