"""The texts of a profile that an index searches and an encoder reads, and which words of a query occur there."""

from collections.abc import Collection, Mapping, Set
from functools import lru_cache
from typing import NamedTuple

from mats.domain.profile.profile import Enrichment, Profile, SourceText
from mats.domain.text.words import (
    Pair,
    content_words,
    may_have_stem,
    separate_cjk,
    spelled_words,
    split_identifier,
    stem,
    stems,
)

FIELD_WEIGHTS: Mapping[str, float] = {
    "name": 1.0, "title": 1.0, "summary": 1.0, "action": 1.0, "keywords": 1.0, "description": 1.0, "examples": 0.5,
    "parameters": 1.2, "other": 0.5,
}  # fmt: skip
"""The lexical fields of every index in column order, and the weight of a word in each: docs/decisions/0003, 0034."""

TEXTS = 3
"""Version of the fields and their terms; an index of another one writes them again, or is reindexed."""

_REPEATED = 0.8
"""Share of an action's content words in the summary from which on it is a repetition."""


def lexical_fields(profile: Profile) -> dict[str, str]:
    """The text of each lexical field, keyed as `FIELD_WEIGHTS`.

    The name is there once as written and twice as words: docs/decisions/0003. A raw profile's summary
    is the start of its description and is not indexed twice, nor is an action that repeats the summary. Negative
    examples are left out.
    """
    return _fields(profile.name, profile.source or SourceText(), profile.enrichment, profile.enriched)


def _fields(name: str, source: SourceText, written: Enrichment, enriched: bool) -> dict[str, str]:
    spoken = split_identifier(name)
    texts = {
        "name": f"{name} {spoken} {spoken}",
        "title": source.title,
        "summary": written.summary if enriched else "",
        "action": added_action(written),
        "keywords": " ".join(written.keywords),
        "description": source.description,
        "examples": " ".join(written.positive_examples),
        "parameters": f"{source.parameter_names} {source.parameter_text}".strip(),
        "other": source.other,
    }
    return {name: separate_cjk(text) for name, text in texts.items()}


_READ = 4_000
"""Characters of each field that are compared with a query; bounds the work per answer."""
_CACHED = 2_048
"""Profiles whose searched text is kept, some kilobytes each."""


class SearchedText(NamedTuple):
    """The starts of the lexical fields in index order, and all of them in lower case, one to a line."""

    fields: tuple[str, ...]
    lowered: str


def searched_text(profile: Profile) -> SearchedText:
    """What is compared with a query once the profile is a candidate; candidates are often those of earlier queries."""
    return _searched_text(profile.name, profile.source or SourceText(), profile.enrichment, profile.enriched)


@lru_cache(maxsize=_CACHED)
def _searched_text(name: str, source: SourceText, written: Enrichment, enriched: bool) -> SearchedText:
    fields = tuple(text[:_READ] for text in _fields(name, source, written, enriched).values())
    return SearchedText(fields, "\n".join(fields).lower())


def added_action(written: Enrichment) -> str:
    """The action, if at least a fifth of its content words are not in the summary; else empty."""
    if not written.action:
        return ""
    said, summary = stems(written.action), stems(written.summary)
    return "" if said and len(said & summary) >= _REPEATED * len(said) else written.action


def embedded_text(profile: Profile) -> str:
    """The encoder's input, most informative text first, because encoders truncate the end.

    The five fields come first if a writer filled them; negative examples are left out.
    """
    source, written = profile.source or SourceText(), profile.enrichment
    spoken = split_identifier(profile.name)
    names = (profile.name, spoken if spoken.lower() != profile.name.lower() else "")
    keywords, examples = " ".join(written.keywords), " ".join(written.positive_examples)
    if profile.enriched:
        said = [f"{written.summary} {added_action(written)}".strip(), keywords[:300], examples[:600]]
        said += [source.description[:700], source.other[:300], source.parameter_names[:200]]
    else:
        # operations of one document share their provider, and differ in little else
        said = [source.description[:700], "" if source.title else source.other[:300]]
        said += [keywords[:200], source.parameter_names[:200], examples[:300]]
    return ". ".join(part for part in (*names, *said, source.parameter_text[:500]) if part)


_CACHED_FIELDS = 4_096
"""Fields whose stems are kept, a kilobyte each."""
_PREFIX = 2
"""Words that share a stem share at least these first letters; comparing them first saves most stemming."""


class MatchedWords(NamedTuple):
    """Words of the query that matched, in its order, and the fields they matched in, in index order.

    `spelled` has them as the capability spells them, in lower case and alphabetical order, for highlighting.
    """

    matched: tuple[str, ...]
    fields: tuple[str, ...]
    spelled: tuple[str, ...] = ()


def explain(terms: Collection[str], profile: Profile) -> MatchedWords:
    """The terms of a query that occur in a profile, by stem as in the index; neural matches have no terms to show."""
    by_stem = {stem(term): term for term in terms}
    starts = tuple({term[:_PREFIX] for term in terms})
    matched: set[str] = set()
    spelled: set[str] = set()
    fields: list[str] = []
    for name, text in lexical_fields(profile).items():
        here = {word: stem(word) for word in set(spelled_words(text)) if word.startswith(starts)}
        said = {word for word, its_stem in here.items() if its_stem in by_stem}
        if said:
            matched.update(here[word] for word in said)
            spelled |= said
            fields.append("positive_examples" if name == "examples" else name)
    in_order = tuple(term for its_stem, term in by_stem.items() if its_stem in matched)
    return MatchedWords(in_order, tuple(fields), tuple(sorted(spelled)))


def pairs_found(asked: Set[Pair], profile: Profile) -> int:
    """How many of a query's pairs of words are also neighbours near the start of a field of the profile."""
    text = searched_text(profile)
    possible = _possible_pairs(asked, text.lowered)
    found: set[Pair] = set()
    for field in filter(None, text.fields if possible else ()):
        for one, other in _possible_pairs(possible, field.lower()):
            if f" {one} {other} " in _stems_in_order(field):
                found.add((one, other))
    return len(found)


@lru_cache(maxsize=_CACHED_FIELDS)
def _stems_in_order(field: str) -> str:
    """The stems of the content words, with a space before and after each."""
    return f" {' '.join(map(stem, content_words(field)))} "


def _possible_pairs(asked: Collection[Pair], lowered: str) -> list[Pair]:
    """The pairs of which a text in lower case may have both stems."""
    return [pair for pair in asked if may_have_stem(lowered, pair[0]) and may_have_stem(lowered, pair[1])]
