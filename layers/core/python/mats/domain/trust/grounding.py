"""Grounding: URLs, identifiers, numbers and proper names of an enrichment must occur in the registration.

A sentence of `summary` or `action`, or an entry of a list, with an ungrounded token is dropped whole, because deleting
the token alone would change the meaning. Examples may have numbers and proper names of their own. If a registration is
only a name, `summary` and `action` may use only words of the name; keywords and examples may be inferred from it,
unless any project could have that name.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Enrichment
from mats.domain.protocols.descriptors import without_call
from mats.domain.text.common_words import ACRONYMS, GENERIC
from mats.domain.text.text import STOP_WORDS, clip, split_identifier, stem, words
from mats.domain.trust.evidence import Evidence, normalize

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
