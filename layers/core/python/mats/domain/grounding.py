"""What a writer may not invent: URLs, identifiers and numbers must stand in the registration.

A sentence of `summary` or `action` that holds one that does not is dropped, and so is an entry of a list: a text with a
hole in it would say something else. Of a registration that is nothing but a name, `summary` and `action` may say only
what the name says; keywords and examples may be inferred from it.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from mats.domain.capability import Kind
from mats.domain.profile import Enrichment
from mats.domain.registration import Registration
from mats.domain.text import STOP_WORDS, clip, every_text, split_identifier, stem, words

_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\.\w\.)\s+|(?<=[。！？])")
"""Not after `e.g.` or `i.e.`: half a sentence says something else."""
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
"""Words that may stand in the summary of a bare name though the name does not say them."""
_READABLE = re.compile(r"(?=.*[aeiouy])[a-z]{3,}|[^\W\d_a-z]{2,}")
_NOTE = 80


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a registration says, in the forms that a claim is looked up in."""

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
        """Addresses, identifiers and numbers of a text that this evidence does not hold."""
        for token in map(_bare, _TOKEN.findall(text)):
            if token and not self._holds(token):
                yield token
        yield from (number for number in _numbers(text) if number not in self.numbers)

    def _holds(self, token: str) -> bool:
        if _NUMBER.fullmatch(token):
            return True  # numbers are looked at by themselves
        link = _URL.search(token) is not None
        if not (link or _IDENTIFIER.search(token) or _mixes(token)):
            return True
        if token.lower() in self.tokens:
            return True
        return not link and any(f" {_normalize(form)} " in self.spoken for form in (token, token.removesuffix("s")))


def _bare(token: str) -> str:
    """A token without the punctuation around it."""
    return token.strip(".:…-–—*").removesuffix("/")


def _mixes(token: str) -> bool:
    """Letters and digits in one token: an order number, a version, a hash."""
    return any(c.isdigit() for c in token) and any(c.isalpha() for c in token)


def _normalize(text: str) -> str:
    """Words and numbers of a text, names taken apart: `getUser_v2` and `get user v2` are alike."""
    return " ".join(words(split_identifier(text)))


def _numbers(text: str) -> Iterator[str]:
    """The numbers of a text as digits: ungrouped, without zeros that say nothing."""
    for number in _NUMBER.findall(text):
        digits = _GROUPING.sub("", number)
        yield digits.rstrip("0").rstrip(".") if "." in digits else digits


@dataclass(frozen=True, slots=True)
class Grounded:
    """What is left of an enrichment, and a note for each thing that was dropped."""

    enrichment: Enrichment
    notes: tuple[str, ...] = ()


def ground(written: Enrichment, registration: Registration) -> Grounded:
    """The enrichment without what the registration does not say."""
    evidence, notes = Evidence.of(registration), list[str]()

    def is_grounded(field: str, text: str) -> bool:
        invented = list(dict.fromkeys(evidence.ungrounded_tokens(text)))
        if invented:
            notes.append(_note(field, text, f"{', '.join(invented)} is not in the registration"))
        return not invented

    claims = {field: _sentences(field, getattr(written, field), is_grounded) for field in ("summary", "action")}
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


def _sentences(field: str, text: str, is_grounded: Callable[[str, str], bool]) -> str:
    return " ".join(sentence for sentence in _SENTENCE_END.split(text) if sentence and is_grounded(field, sentence))


def is_bare(registration: Registration) -> bool:
    """Whether an owner wrote nothing of what it does but its name."""
    said = registration.item().keys() & {
        "tags", "type_tags", "input_schema", "examples", "negative_examples", "descriptor",
    }  # fmt: skip
    described = _normalize(registration.description) not in ("", _normalize(registration.name))
    return not said and not described


def _beyond_a_bare_name(text: str, registration: Registration) -> str:
    """What is wrong with a claim about a registration that is nothing but a name; empty if nothing is."""
    if not text or not is_bare(registration):
        return ""
    if is_opaque(registration.name):
        return "nothing but the name is known, and it says nothing"
    names = f"{registration.name} {registration.provider}"
    known = {stem(word) for word in words(f"{split_identifier(names)} {names}")} | {stem(kind) for kind in Kind}
    said = [word for word in words(text) if word not in STOP_WORDS]
    if all(stem(word) in _SAYS_LITTLE for word in said):
        return "it says nothing"
    beyond = next((word for word in said if stem(word) not in known | _SAYS_LITTLE), "")
    return f"nothing but the name is known, and it does not say {beyond}" if beyond else ""


def is_opaque(name: str) -> bool:
    """Whether a name says nothing: no word in it can be read aloud, or one beside scraps, as in `xq7_proc`."""
    said = words(split_identifier(name))
    readable = sum(_READABLE.fullmatch(word) is not None for word in said)
    return readable == 0 or (readable == 1 and len(said) > 1)
