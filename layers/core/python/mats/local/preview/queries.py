"""The queries of a preview: examples, or else queries derived from the registration's text."""

from typing import NamedTuple

from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Profile
from mats.domain.protocols.descriptors import A2A, MCP
from mats.domain.text.words import clip, content_words, first_sentence, split_identifier

_MAX_QUERIES = 5


class TriedQuery(NamedTuple):
    """A query and its origin: the owner's or the writer's examples, or derived from the text."""

    text: str
    origin: str


def choose_queries(registration: Registration, profile: Profile) -> list[TriedQuery]:
    """The owner's examples, else the writer's, else the description, the name and the tags."""
    for texts, origin in (
        (registration.examples, "its examples"),
        (profile.enrichment.positive_examples, "the writer's examples"),
    ):
        if texts:
            return [TriedQuery(clip(text, 2_000), origin) for text in texts[:_MAX_QUERIES]]
    description = first_sentence(profile.source.description, 200) if profile.source else ""
    tags = " ".join(tag for tag in registration.tags if tag not in (MCP, A2A))
    derived = [
        TriedQuery(description, "derived from its description"),
        TriedQuery(clip(split_identifier(registration.name), 200), "derived from its name"),
        TriedQuery(clip(tags, 200), "derived from its tags"),
    ]
    return [query for query in derived if content_words(query.text)]


def without_example(profile: Profile, example: str) -> Profile:
    """The profile without one of its positive examples."""
    examples = profile.enrichment.positive_examples
    others = tuple(text for text in examples if text != example)
    by_owner = sum(text != example for text in examples[: profile.owner_examples])
    enrichment = profile.enrichment.model_copy(update={"positive_examples": others})
    return profile.model_copy(update={"enrichment": enrichment, "owner_examples": by_owner})
