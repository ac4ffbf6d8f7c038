"""Evidence for claims about a capability: the tokens, words and numbers of its registration."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from mats.domain.capability.registration import Registration
from mats.domain.text.common_words import ACRONYMS, ORDINARY
from mats.domain.text.text import STOP_WORDS, every_text, split_identifier, stem, words

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
