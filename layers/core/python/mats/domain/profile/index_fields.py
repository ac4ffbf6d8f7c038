"""The texts of a profile that an index searches and an encoder reads, and which words of a query occur there."""

from collections.abc import Collection, Mapping, Set
from functools import lru_cache
from typing import NamedTuple

from mats.domain.profile.profile import Profile, SourceText
from mats.domain.text import words

FIELD_WEIGHTS: Mapping[str, float] = {
    "name": 1.0, "title": 1.0, "keywords": 1.0, "description": 1.0, "examples": 1.0, "parameters": 1.2, "other": 0.5,
}  # fmt: skip
"""The lexical fields of every index in column order, and the weight of a word in each: docs/decisions/0003, 0074."""

TEXTS = 7  # Version of the fields and their terms; an index of another one writes them again, or is reindexed

_WITHOUT_PAIRS = "keywords"  # A list of phrases: its neighbours are ready-made pairs of words


def lexical_fields(profile: Profile) -> dict[str, str]:
    """The text of each lexical field, keyed as `FIELD_WEIGHTS`: the owner's text, and the examples of owner and writer.

    The name is there once as written and twice as words: docs/decisions/0003. Keywords are the owner's tags; what a
    writer wrote beside examples is for the reranker: docs/decisions/0074. Negative examples are left out.
    """
    return _fields(profile.name, profile.source or SourceText(), profile.tags, profile.enrichment.positive_examples)


def _fields(name: str, source: SourceText, tags: tuple[str, ...], examples: tuple[str, ...]) -> dict[str, str]:
    spoken = words.split_identifier(name)
    texts = {
        "name": f"{name} {spoken} {spoken}",
        "title": f"{source.title} {source.spoken}".strip(),
        "keywords": " ".join(tags),
        "description": source.description,
        "examples": " ".join(examples),
        "parameters": f"{source.parameter_names} {source.parameter_text}".strip(),
        "other": source.other,
    }
    return {name: words.separate_cjk(text) for name, text in texts.items()}


class TermCounts(NamedTuple):
    """How often each term occurs in a text, each occurrence counted by the weight of its field."""

    frequencies: Mapping[str, float]
    length: int  # Terms in all fields, each counted 1


def count_terms(fields: Mapping[str, str], weights: Mapping[str, float]) -> TermCounts:
    """The terms of a text in fields, with a weight for each field."""
    frequencies: dict[str, float] = {}
    length = 0
    for name, text in fields.items():
        for term in words.index_terms(text):
            frequencies[term] = frequencies.get(term, 0.0) + weights[name]
            length += 1
    return TermCounts(frequencies, length)


_READ = 4_000  # Characters of each field that are compared with a query; bounds the work per answer
_CACHED = 2_048  # Profiles whose searched text is kept, some kilobytes each


class SearchedText(NamedTuple):
    fields: tuple[str, ...]  # The starts of the lexical fields, in index order
    telling: tuple[str, ...]  # The fields whose pairs of words count
    lowered: str  # All of the fields in lower case, one to a line


def searched_text(profile: Profile) -> SearchedText:
    """Texts to compare with a query once the profile is a candidate; candidates are often those of earlier queries."""
    source, examples = profile.source or SourceText(), profile.enrichment.positive_examples
    return _searched_text(profile.name, source, profile.tags, examples)


@lru_cache(maxsize=_CACHED)
def _searched_text(name: str, source: SourceText, tags: tuple[str, ...], examples: tuple[str, ...]) -> SearchedText:
    fields = {field: text[:_READ] for field, text in _fields(name, source, tags, examples).items()}
    telling = tuple(text for field, text in fields.items() if field != _WITHOUT_PAIRS)
    return SearchedText(tuple(fields.values()), telling, "\n".join(fields.values()).lower())


def embedded_text(profile: Profile) -> str:
    """The encoder's input, most informative text first, because encoders truncate the end.

    It is what is searched by words; a writer's examples come before the owner's text, which they complete.
    """
    source = profile.source or SourceText()
    spoken = words.split_identifier(profile.name)
    names = (source.spoken, profile.name, spoken if spoken.lower() != profile.name.lower() else "")
    tags, examples = " ".join(profile.tags)[:200], " ".join(profile.enrichment.positive_examples)
    # operations of one document share their provider, and differ in little else
    said = [source.description[:700], "" if source.title and not profile.enriched else source.other[:300]]
    if profile.enriched:
        said = [tags, examples[:600], *said, source.parameter_names[:200]]
    else:
        said += [tags, source.parameter_names[:200], examples[:300]]
    # operations of one API share most of their parameters
    said.append("" if source.spoken else source.parameter_text[:500])
    return ". ".join(part for part in (*names, *said) if part)


_CACHED_FIELDS = 4_096  # Fields whose stems are kept, a kilobyte each
_PREFIX = 2  # Words that share a stem share at least these first letters; comparing them first saves most stemming


class MatchedWords(NamedTuple):
    matched: tuple[str, ...]  # Words of the query, in its order
    fields: tuple[str, ...]  # The fields they matched in, in index order
    spelled: tuple[str, ...] = ()
    """The words as the capability spells them, in lower case and alphabetical order, for highlighting."""


def explain(terms: Collection[str], profile: Profile) -> MatchedWords:
    """The terms of a query that occur in a profile, by stem as in the index; neural matches have no terms to show."""
    by_stem = {words.stem(term): term for term in terms}
    starts = tuple({term[:_PREFIX] for term in terms})
    matched: set[str] = set()
    spelled: set[str] = set()
    fields: list[str] = []
    for name, text in lexical_fields(profile).items():
        here = {word: words.stem(word) for word in set(words.spelled_words(text)) if word.startswith(starts)}
        said = {word for word, its_stem in here.items() if its_stem in by_stem}
        if said:
            matched.update(here[word] for word in said)
            spelled |= said
            fields.append("positive_examples" if name == "examples" else name)
    in_order = tuple(term for its_stem, term in by_stem.items() if its_stem in matched)
    return MatchedWords(in_order, tuple(fields), tuple(sorted(spelled)))


def pairs_found(asked: Set[words.Pair], profile: Profile) -> int:
    """How many pairs of a query's words are also neighbours near the start of a field of the profile, tags aside."""
    text = searched_text(profile)
    possible = _possible_pairs(asked, text.lowered)
    found: set[words.Pair] = set()
    for field in filter(None, text.telling if possible else ()):
        for one, other in _possible_pairs(possible, field.lower()):
            if f" {one} {other} " in _stems_in_order(field):
                found.add((one, other))
    return len(found)


@lru_cache(maxsize=_CACHED_FIELDS)
def _stems_in_order(field: str) -> str:
    """The stems of the content words, with a space before and after each."""
    return f" {' '.join(map(words.stem, words.content_words(field)))} "


def _possible_pairs(asked: Collection[words.Pair], lowered: str) -> list[words.Pair]:
    """The pairs of which a text in lower case may have both stems."""
    return [pair for pair in asked if words.may_have_stem(lowered, pair[0]) and words.may_have_stem(lowered, pair[1])]
