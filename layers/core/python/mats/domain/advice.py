"""What an owner could do better about a registration, in plain words: what is lacking, why it matters, what to do."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from mats.domain.capability import Kind
from mats.domain.profile import Profile
from mats.domain.registration import Registration
from mats.domain.suspicion import LONG as TOO_LONG
from mats.domain.text import STOP_WORDS, split_identifier, stem, words

SPARSE = 8
"""Content words of a description below which it says little."""
LONG = 1_500
"""Characters of a description from which on an encoder does not read to the end (docs/decisions/0003)."""
EXAMPLES = 2
_FEW = 4


class Weight(StrEnum):
    """How much it matters."""

    MUST = "must"
    """It will be refused, or looked at with suspicion."""
    SHOULD = "should"
    """It will be found less often."""
    COULD = "could"


class Advice(NamedTuple):
    """One thing to mend."""

    flag: str
    weight: Weight
    what: str
    fix: str


def advice(registration: Registration, profile: Profile) -> tuple[Advice, ...]:
    """What there is to mend, weightiest first."""
    found = [*_suspicious(profile), *_described(registration, profile), *_called(registration)]
    return tuple(sorted(found, key=lambda one: list(Weight).index(one.weight)))


def _suspicious(profile: Profile) -> Iterator[Advice]:
    for reason in profile.suspicious:
        if reason == TOO_LONG:
            yield Advice(
                "very long", Weight.SHOULD, f"all its text together {reason}",
                "cut what nobody searches for: answers with it carry a warning, and judges see only its beginning",
            )  # fmt: skip
            continue
        yield Advice(
            "suspicious", Weight.MUST, f"its text {reason}",
            "say what it does, to people; every answer with it carries this warning until the text is gone",
        )  # fmt: skip


def _described(registration: Registration, profile: Profile) -> Iterator[Advice]:
    said = content_words(registration.description)
    if not said:
        yield Advice(
            "no description", Weight.SHOULD, "it says nothing about itself",
            "add a `description`: what it does, for whom, in words that people would ask with",
        )  # fmt: skip
    elif len(said) < SPARSE:
        yield Advice(
            "sparse", Weight.SHOULD, f"its description has {len(said)} telling words",
            "say in a second sentence what it takes, what it gives and what it is used for",
        )  # fmt: skip
    elif len(registration.description) > LONG:
        yield Advice(
            "long description", Weight.COULD, f"its description has {len(registration.description):,} characters",
            "put what it does into the first two sentences: later ones count for words, hardly for meaning",
        )  # fmt: skip
    if not profile.enrichment.positive_examples:
        yield Advice(
            "no examples", Weight.SHOULD, "nothing says how people would ask for it",
            "add `examples`: two to five requests it serves, as somebody would type them",
        )  # fmt: skip
    elif len(registration.examples) < EXAMPLES and not profile.enriched:
        yield Advice(
            "few examples", Weight.COULD, "there is one example only", "add one or two that are worded differently"
        )
    spoken = [word for word in words(split_identifier(registration.name)) if len(word) > 2 and not word.isdigit()]
    if not spoken:
        yield Advice(
            "opaque name", Weight.COULD, f"its name {registration.name[:60]!r} has no word in it",
            "name it for what it does, if it can still be renamed; if not, the description has to say all",
        )  # fmt: skip


def _called(registration: Registration) -> Iterator[Advice]:
    schema = registration.input_schema
    if registration.kind is Kind.TOOL and schema is None:
        yield Advice(
            "no schema", Weight.SHOULD, "a tool without an input schema can be found but not be handed to a model",
            "add `input_schema`, the JSON Schema of its input; parameter names and descriptions are searched, too",
        )  # fmt: skip
    if schema and (bare := undescribed(schema)):
        named = ", ".join(f"`{name[:40]}`" for name in bare[:5]) + (" and others" if len(bare) > 5 else "")
        yield Advice(
            "undescribed parameters", Weight.COULD, f"nothing says what these parameters mean: {named}",
            "add a `description` to each property: it is searched, and models fill parameters by it",
        )  # fmt: skip
    if not registration.endpoint and registration.kind is not Kind.SKILL:
        yield Advice(
            "no endpoint", Weight.COULD, "nothing says where it is called", "add `endpoint`, its address or ARN"
        )


def undescribed(schema: Mapping[str, Any]) -> Sequence[str]:
    """Properties of a schema that have neither a description nor choices nor properties of their own."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return []
    told = ("description", "title", "enum", "examples", "const", "properties")
    return [str(n) for n, p in properties.items() if not (isinstance(p, Mapping) and any(key in p for key in told))]


def content_words(text: str) -> list[str]:
    """Distinct words that say something, in order."""
    return list(dict.fromkeys(word for word in words(text) if word not in STOP_WORDS))


def overlap(one: str, other: str) -> float:
    """The share of stems that two texts have in common of those in either (Jaccard), in [0, 1].

    It is 0 for texts that share fewer than four: a couple of words in common say nothing.
    """
    ours, theirs = ({stem(word) for word in content_words(text)} for text in (one, other))
    shared = len(ours & theirs)
    return shared / len(ours | theirs) if shared >= _FEW else 0.0
