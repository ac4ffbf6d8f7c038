"""Grounding: URLs, identifiers, numbers and proper names of an enrichment must occur in the registration.

A sentence of `summary` or `action`, or an entry of a list, with an ungrounded token is dropped whole, because deleting
the token alone would change the meaning. Examples may have numbers and proper names of their own. If a registration is
only a name, `summary` and `action` may use only words of the name; keywords and examples may be inferred from it,
unless any project could have that name.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Enrichment
from mats.domain.protocols.descriptors import without_call
from mats.domain.text.common_words import ACRONYMS, GENERIC, ORDINARY
from mats.domain.text.words import STOP_WORDS, clip, every_text, split_identifier, stem, words

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
_HARMLESS = re.compile(
    r"(?!v\d)[a-z]{1,3}\d{1,2}"  # MP3, A4; not v3
    r"|\d{1,4}[a-z]{1,3}|\d{1,4}-[a-z]+"  # 1980s, 48h, 3D, 10-km
    r"|\d{1,2}:\d\d(?:[ap]m)?|\d{1,6}%?",
    re.IGNORECASE,
)
"""Tokens with digits that illustrate a request and name nothing."""
_LONGEST_COUNT = 6
"""Digits; a longer number without grouping is an account, an order or a telephone."""
_NAME = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_OPENING = re.compile(r"(?:^|[.!?:;•–—|(\[\"“‘])\s*[\"“‘'(\[*-]*\s*$")
"""The text before a word that is capitalized because something begins with it."""
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
_INFLECTED = re.compile(r"[a-z]+(?:s|ing|ed)")
_SHARED = 5
"""Words that begin with the same letters, this many, are taken as forms of one word."""
_PROMOTION = re.compile(
    r"\b(?:free of charge|for free|unlimited|no limits|top[- ]ten|top[- ]rated|best[- ]in[- ]class|world[- ]class|"
    r"(?:world|industry|market)[- ]leading|award[- ]winning|state[- ]of[- ]the[- ]art|cutting[- ]edge|guaranteed)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The tokens, normalized words, their stems and the numbers of a registration that claims are checked against."""

    tokens: frozenset[str]
    spoken: str
    stems: frozenset[str]
    initials: str
    numbers: frozenset[str]

    @classmethod
    def of(cls, registration: Registration) -> Self:
        """Every name and text of a registration."""
        text = "\n".join(every_text(registration.item()))
        tokens = frozenset(bare_token(token).lower() for token in _TOKEN.findall(text))
        split, whole = words(split_identifier(text)), words(text)
        joined = map("".join, pairwise(split))  # GitHub, which is split, and Github, which is not
        return cls(
            tokens=tokens,
            spoken=f" {' '.join(split)} ",
            stems=frozenset(joined).union(map(stem, {*split, *whole})),
            initials="".join(word[0] for word in split if word not in STOP_WORDS),
            numbers=frozenset(_numbers(text)),
        )

    def in_claim(self, sentence: str) -> Iterator[str]:
        """Additions of a sentence of summary or action: tokens, proper names, promotional claims."""
        yield from self._tokens(sentence)
        yield from self.proper_names(sentence)
        claims = (found[0] for found in _PROMOTION.finditer(sentence))
        yield from (claim for claim in claims if f" {normalize(claim)} " not in self.spoken)

    def in_keyword(self, text: str) -> Iterator[str]:
        """Additions of a keyword: tokens, and names with an inner capital; many writers capitalize every keyword."""
        yield from self._tokens(text)
        names = (name for name in _NAME.findall(text) if _INNER_CAPITAL.search(name))
        yield from (name for name in names if not self._knows(name, begins=False))

    def in_example(self, text: str) -> Iterator[str]:
        """Additions of a request: URLs, identifiers and long numbers; short numbers illustrate it."""
        for token in map(bare_token, _TOKEN.findall(text)):
            if token and not _HARMLESS.fullmatch(token) and not self._contains(token):
                yield token
        yield from (n for n in _numbers(text) if len(n.partition(".")[0]) > _LONGEST_COUNT and n not in self.numbers)

    def proper_names(self, sentence: str) -> Iterator[str]:
        """Capitalized words of a sentence that do not occur in the registration and are no ordinary English words.

        A word that begins the sentence counts if it is neither inflected nor one that sentences often begin with.
        """
        for found in _NAME.finditer(sentence):
            name = re.split("['’]", found[0])[0]
            if name[0].isupper() or _INNER_CAPITAL.search(name):
                begins = _OPENING.search(sentence, 0, found.start()) is not None
                if not self._knows(name, begins=begins):
                    yield name

    def _tokens(self, text: str) -> Iterator[str]:
        """URLs, identifiers and numbers of a text that do not occur in the registration."""
        for token in map(bare_token, _TOKEN.findall(text)):
            if token and not self._contains(token):
                yield token
        yield from (number for number in _numbers(text) if number not in self.numbers)

    def _knows(self, name: str, *, begins: bool) -> bool:
        lower = name.lower()
        if lower in ORDINARY or lower in STOP_WORDS or len(name) == 1:
            return True
        if name.isupper() or name.rstrip("s").isupper():
            acronym = name.rstrip("s").upper()
            if acronym in ACRONYMS or acronym.lower() in self.initials:
                return True
        elif begins and not _INNER_CAPITAL.search(name) and _INFLECTED.fullmatch(lower):
            return True
        if stem(lower) in self.stems or f" {normalize(name)} " in self.spoken:
            return True
        prefix = f" {lower[:_SHARED]}"
        return len(lower) > _SHARED and prefix in self.spoken

    def _contains(self, token: str) -> bool:
        if _NUMBER.fullmatch(token):
            return True  # numbers are checked separately
        link = _URL.search(token) is not None
        mixed = any(map(str.isdigit, token)) and any(map(str.isalpha, token))  # order numbers, versions, hashes
        if not (link or mixed or _IDENTIFIER.search(token)):
            return True
        if token.lower() in self.tokens:
            return True
        return not link and any(f" {normalize(form)} " in self.spoken for form in (token, token.removesuffix("s")))


def bare_token(token: str) -> str:
    """A token without the punctuation around it."""
    return token.strip(".:…-–—*").removesuffix("/")


def normalize(text: str) -> str:
    """Words and numbers of a text, names taken apart: `getUser_v2` and `get user v2` are alike."""
    return " ".join(words(split_identifier(text)))


def _numbers(text: str) -> Iterator[str]:
    """The numbers of a text as digits, without grouping and trailing zeros."""
    for number in _NUMBER.findall(text):
        digits = _GROUPING.sub("", number)
        yield digits.rstrip("0").rstrip(".") if "." in digits else digits


_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\.\w\.)\s+|(?<=[。！？])")
"""Not after `e.g.` or `i.e.`, which do not end a sentence."""
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
_MASHED = re.compile("asdf|sdf|dfg|ghj|hjk|jkl|qwer|zxc|xcv|cvb|vbn|lkj")
"""Neighbouring keys that no word has side by side."""
_NOTE = 80
SAYS_NOTHING = "name and description say nothing of what it does"


@dataclass(frozen=True, slots=True)
class Grounded:
    """The grounded part of an enrichment, and a note for each dropped text."""

    enrichment: Enrichment
    notes: tuple[str, ...] = ()


def ground(written: Enrichment, registration: Registration) -> Grounded:
    """The enrichment without sentences and entries that the registration does not support."""
    if says_nothing(registration):
        return Grounded(Enrichment(), () if written == Enrichment() else (f"dropped all fields: {SAYS_NOTHING}",))
    evidence, notes = Evidence.of(registration), list[str]()
    checks: dict[str, Callable[[str], Iterator[str]]] = {
        "summary": evidence.in_claim,
        "action": evidence.in_claim,
        "keywords": evidence.in_keyword,
        "positive_examples": evidence.in_example,
        "negative_examples": evidence.in_example,
    }

    def is_grounded(field: str, text: str) -> bool:
        if invented := _comma_list(checks[field](text)):
            notes.append(_note(field, text, f"{invented} is not in the registration"))
        elif field == "positive_examples" and (named := _comma_list(evidence.proper_names(text))):
            notes.append(f"kept in {field}: {clip(text, _NOTE)!r} ({clip(named, _NOTE)} is not in the registration)")
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


def _comma_list(tokens: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(tokens))


def _note(field: str, text: str, why: str) -> str:
    return f"dropped from {field}: {clip(text, _NOTE)!r} ({clip(why, 2 * _NOTE)})"


def is_bare(registration: Registration) -> bool:
    """Whether the name is the only text about the capability's purpose."""
    described = normalize(registration.description) not in ("", normalize(registration.name))
    return not _has_more(registration) and not described


def says_nothing(registration: Registration) -> bool:
    """Whether name and description could be any project's, such as `Demo Project`, and there is nothing else."""
    return not _has_more(registration) and all(
        _is_empty(word)
        for text in (registration.name, registration.description)
        for word in words(split_identifier(text))
    )


def _has_more(registration: Registration) -> bool:
    """Whether there is more about the capability's purpose than name and description."""
    given = registration.item().keys()
    if registration.descriptor and without_call(registration.descriptor):
        return True
    return not given.isdisjoint({"tags", "type_tags", "input_schema", "examples", "negative_examples"})


def _is_empty(word: str) -> bool:
    """Whether a word of a name, in lower case, says nothing: generic, a number, unreadable."""
    if word in GENERIC or word.isdigit() or _MASHED.search(word):
        return True
    return not _READABLE.fullmatch(word) and word.upper() not in ACRONYMS


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
