"""Grounding: what an enrichment names and promises must have support in the registration.

A sentence of `summary` or `action`, or an entry of a list, with an ungrounded token or act is dropped whole, because
deleting that alone would change the meaning; so is a sentence of `summary` that has no content word in common with the
registration. Examples may have numbers and proper names of their own. If a registration is only a name, `summary` and
`action` may use only words of the name; keywords and examples may be inferred from it, unless any project could have
that name.
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
from mats.domain.text.words import (
    STOP_WORDS,
    clip,
    content_words,
    every_text,
    may_be_foreign,
    split_identifier,
    stem,
    words,
)

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
    r"(?!v\d)[a-z]{1,3}\d{1,4}"  # MP3, A4, LH1234; not v3
    r"|\d{1,4}[a-z]{1,3}|\d{1,4}-[a-z]+"  # 1980s, 48h, 3D, 10-km
    r"|\d{1,2}:\d\d(?:[ap]m)?|\d{1,6}%?"
    r"|(?:https?://|[\w.-]+@)?(?:www\.)?example\.(?:com|org|net)",  # reserved by RFC 2606
    re.IGNORECASE,
)
"""Tokens that illustrate a request and name nothing."""
_TERM = re.compile(r"[a-z]+2[a-z]+|[1-4]d|mp[34]", re.IGNORECASE)  # Tokens with digits that are words: seq2seq, 2D
_MIXED_WORD = re.compile(r"(?<![\w.@/-])(?=\w*[a-z\d])[A-Z]\w+(?![\w@/-])")
_LONGEST_COUNT = 6  # Digits; a longer number without grouping is an account, an order or a telephone
_NUMBERED = re.compile(r"\b(barcode|code|id|isbn|number) (?=\d+\b)", re.IGNORECASE)
"""The word before a number that a request may have at any length, if the registration has that word."""
_NAME = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LONG_NAME = re.compile(r"[A-Z][a-z]+(?: [A-Z][a-z]+){2,}")
_OPENING = re.compile(r"(?:^|[.!?:;•–—|(\[\"“‘])\s*[\"“‘'(\[*-]*\s*$")
"""The text before a word that is capitalized because something begins with it."""
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
_INFLECTED = re.compile(r"[a-z]+(?:s|ing|ed)")
_SHARED = 5  # Words that begin with the same letters, this many, are taken as forms of one word
_PROMOTION = re.compile(
    r"\b(?:free of charge|for free|unlimited|no limits|top[- ]ten|top[- ]rated|best[- ]in[- ]class|world[- ]class|"
    r"(?:world|industry|market)[- ]leading|award[- ]winning|state[- ]of[- ]the[- ]art|cutting[- ]edge|guarantee[ds]?|"
    r"(?:in )?real[- ]time|(?:in )?any language|multilingual)\b",
    re.IGNORECASE,
)
_SUPPORT = {
    "book reserve": "booking reservation appointment ticket order",
    "pay buy purchase sell": "payment checkout charge order shop store trade broker bill billing invoice transaction "
    "wallet market sale",
    "deposit withdraw": "transfer payment bank wallet transaction",
    "send email notify alert warn remind": "mail message sms notification reminder post webhook push chat",
    "translate": "translation language multilingual",
    "cancel delete": "remove edit update manage change",
    "deploy": "deployment release host hosting",
}
_ACT_OF = {
    stem(act): frozenset(map(stem, f"{acts} {nouns}".split()))
    for acts, nouns in _SUPPORT.items()
    for act in acts.split()
}
"""Acts that writers like to invent, and the stems of which the registration must have one."""
_CLAUSE = re.compile(r"(?:^|[,;:(]|\b(?:and|or|then|also)\b)\s*(?=([^\W\d_]+) (?!and|or)\w)", re.IGNORECASE)
"""The start of a clause, and its first word, which is not all of it."""
_FURTHER_CLAUSE = re.compile(
    r"(?:[,;:]|\band|\bthen)\s+(?:(?:and|then|also)\s+)*(?=[a-z]+[^s\W]s\s(?!(?:and|or|of|for|from|in|to|on|by|with|at)\b))"
)
"""The border before a clause that begins with a verb in the third person."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The tokens, normalized words, their stems and the numbers of a registration that claims are checked against."""

    text: str
    tokens: frozenset[str]
    spoken: str
    stems: frozenset[str]
    initials: str
    numbers: frozenset[str]
    foreign: bool
    """True if it is in another language, so that its words cannot be compared with those of an English claim."""

    @classmethod
    def of(cls, registration: Registration) -> Self:
        """Every name and text of a registration."""
        text = "\n".join(every_text(registration.item()))
        tokens = frozenset(bare_token(token).lower() for token in _TOKEN.findall(text))
        split, whole = words(split_identifier(text)), words(text)
        joined = map("".join, pairwise(split))  # GitHub, which is split, and Github, which is not
        return cls(
            text=text.lower(),
            tokens=tokens,
            spoken=f" {' '.join(split)} ",
            stems=frozenset(joined).union(map(stem, {*split, *whole})),
            initials="".join(word[0] for word in split if word not in STOP_WORDS),
            numbers=frozenset(_numbers(text)),
            foreign=may_be_foreign(words(f"{registration.name} {registration.description}")),
        )

    def in_summary(self, sentence: str) -> Iterator[str]:
        """Additions of a sentence of the summary: those of a claim, and clauses without a supported content word."""
        yield from self.in_claim(sentence)
        for clause in (sentence, *_FURTHER_CLAUSE.split(sentence)[1:]):
            said = content_words(f"{clause} {split_identifier(clause)}")
            telling = {stem(word) for word in said if word.upper().rstrip("S") not in ACRONYMS} - _SAYS_LITTLE
            if telling and telling.isdisjoint(self.stems) and not self.foreign:
                yield clause

    def in_claim(self, sentence: str) -> Iterator[str]:
        """Additions of a sentence of summary or action: tokens, proper names, promotional claims, acts."""
        said = _MIXED_WORD.sub(_without_acronym, sentence)
        yield from self._tokens(said)
        yield from self._proper_names(said)
        claims = (found[0] for found in _PROMOTION.finditer(sentence))
        yield from (claim for claim in claims if f" {normalize(claim)} " not in self.spoken)
        yield from self._acts(sentence)

    def in_keyword(self, text: str) -> Iterator[str]:
        """Additions of a keyword: tokens, names with an inner capital (many writers capitalize every keyword), acts."""
        said = " ".join(token for token in text.split() if not _TERM.fullmatch(token))
        said = _MIXED_WORD.sub(_without_acronym, said)
        yield from self._tokens(said)
        names = (name for name in _NAME.findall(said) if _INNER_CAPITAL.search(name))
        yield from (name for name in names if not self._knows(name, begins=False))
        yield from self._acts(text)

    def in_example(self, text: str) -> Iterator[str]:
        """Additions of a request: those of a neighbour's request, and acts."""
        yield from self.in_negative_example(text)
        yield from self._acts(text)

    def in_negative_example(self, text: str) -> Iterator[str]:
        """Additions of a neighbour's request: URLs, identifiers and long numbers; short numbers illustrate it."""
        for token in map(bare_token, _TOKEN.findall(_MIXED_WORD.sub(_without_acronym, text))):
            if token and not _HARMLESS.fullmatch(token) and not self._contains(token):
                yield token
        if not any(stem(found[1].lower()) in self.stems for found in _NUMBERED.finditer(text)):
            long = (number for number in _numbers(text) if len(number.partition(".")[0]) > _LONGEST_COUNT)
            yield from (number for number in long if number not in self.numbers)

    def _acts(self, text: str) -> Iterator[str]:
        """Acts at the beginning of a clause that the registration does not speak of."""
        for found in _CLAUSE.finditer(text):
            support = _ACT_OF.get(stem(found[1].lower()))
            if support and support.isdisjoint(self.stems) and not self.foreign:
                yield found[1]

    def _proper_names(self, sentence: str) -> Iterator[str]:
        """Capitalized words of a sentence that do not occur in the registration and are no ordinary English words.

        Three or more occur if their initials do: Portable Network Graphics. A word that begins the sentence counts if
        it is neither inflected nor one that sentences often begin with.
        """
        runs = _LONG_NAME.findall(sentence)
        initials = {run: "".join(word[0] for word in run.split()).lower() for run in runs}
        spelled = {word for run in runs if f" {initials[run]} " in self.spoken for word in run.split()}
        for found in _NAME.finditer(sentence):
            name = re.split("['’]", found[0])[0]
            if name in spelled:
                continue
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
        if mixed and token.isalnum() and re.search(rf"\b{token.lower()}(?!\d)", self.text):
            return True  # LayoutLMv2 of layoutlmv2-base
        return not link and any(f" {normalize(form)} " in self.spoken for form in (token, token.removesuffix("s")))


def _without_acronym(found: re.Match[str]) -> str:
    """Nothing in place of a known acronym: CO2, IoT."""
    return "" if found[0].upper() in ACRONYMS else found[0]


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
        "performs process provide provides related request result return run service skill something support task "
        "tool use used user using work"
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
        "summary": evidence.in_claim if is_bare(registration) else evidence.in_summary,
        "action": evidence.in_claim,
        "keywords": evidence.in_keyword,
        "positive_examples": evidence.in_example,
        "negative_examples": evidence.in_negative_example,
    }

    def is_grounded(field: str, text: str) -> bool:
        if invented := ", ".join(dict.fromkeys(checks[field](text))):
            notes.append(_note(field, text, f"{invented} is not in the registration"))
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
    """True if the name is the only text about the capability's purpose."""
    described = normalize(registration.description) not in ("", normalize(registration.name))
    return not _has_more(registration) and not described


def says_nothing(registration: Registration) -> bool:
    """True if name and description could be any project's, such as `Demo Project`, and there is nothing else."""
    return not _has_more(registration) and all(
        _is_empty(word)
        for text in (registration.name, registration.description)
        for word in words(split_identifier(text))
    )


def _has_more(registration: Registration) -> bool:
    """True if there is more about the capability's purpose than name and description."""
    given = registration.item().keys()
    if registration.descriptor and without_call(registration.descriptor):
        return True
    return not given.isdisjoint({"tags", "type_tags", "input_schema", "examples", "negative_examples"})


def _is_empty(word: str) -> bool:
    """True if a word of a name, in lower case, says nothing: generic, a number, unreadable."""
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
    """True if a name is unreadable: no pronounceable word, or just one beside fragments, as in `xq7_proc`."""
    said = words(split_identifier(name))
    readable = sum(_READABLE.fullmatch(word) is not None for word in said)
    return readable == 0 or (readable == 1 and len(said) > 1)
