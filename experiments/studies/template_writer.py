"""A writer without a model: it fills four of the five fields from templates, with words of registrations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, zip_longest

from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Enrichment, SourceText
from mats.domain.text.words import content_words, first_sentence, split_identifier

_REQUESTS = ("I want to {}", "help me {}", "can you {} for me", "please {} today", "how would I {}")
_STOLEN = 2
_ACT = 80
"""Characters of what a neighbour does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """Words of the summary, the action and each example, and the number of keywords and examples."""

    summary: int
    action: int
    keywords: int
    examples: int
    example: int


LENGTHS: Mapping[str, Length] = {
    "short": Length(summary=12, action=8, keywords=5, examples=3, example=7),
    "medium": Length(summary=25, action=15, keywords=8, examples=4, example=11),
    "long": Length(summary=40, action=25, keywords=12, examples=5, example=16),
}
"""The longest is what the prompt allows."""


def write(registration: Registration, length: Length, neighbours: Sequence[Registration] = ()) -> Enrichment:
    """Fields of a length, the same for the same registration.

    Short registrations are filled up with words of their neighbours, as a model fills them up with words of the domain;
    two of the examples are what the nearest neighbours do.
    """
    source, name = SourceText.of(registration), split_identifier(registration.name)
    borrowed = _words_of_others(registration, neighbours)
    own = content_words(f"{name} {source.description} {source.parameter_names}")
    content = list(dict.fromkeys((*own, *borrowed)))
    about = [*(source.description or name).split(), "for", *borrowed]
    act = [*_act(registration).split(), *reversed(borrowed)]
    stolen = [_act(neighbour) for neighbour in neighbours[:_STOLEN]]
    first = length.keywords // 2
    return Enrichment(
        summary=" ".join(about[: length.summary]),
        action=" ".join(act[: length.action]),
        keywords=tuple(dict.fromkeys((*content[:first], *content[::-1][: length.keywords - first]))),
        positive_examples=tuple(dict.fromkeys((*stolen, *_requests(name.lower(), content, length))))[: length.examples],
    )


def _act(registration: Registration) -> str:
    return f"{split_identifier(registration.name)} {first_sentence(registration.description, _ACT)}".strip()


def _words_of_others(own: Registration, neighbours: Sequence[Registration]) -> list[str]:
    """Content words of the neighbours in turn, without the capability's own."""
    known = set(content_words(_act(own)))
    texts = [content_words(_act(neighbour)) for neighbour in neighbours]
    words = dict.fromkeys(word for together in zip_longest(*texts, fillvalue="") for word in together)
    return [word for word in words if word and word not in known]


def _requests(name: str, content: Sequence[str], length: Length) -> Iterator[str]:
    """Requests for what the name says, each with other words."""
    words = cycle(content)
    for form in islice(_REQUESTS, length.examples if content else 0):
        asked = f"{name} with {' '.join(islice(words, length.example))}".split()
        yield form.format(" ".join(asked[: length.example]))
