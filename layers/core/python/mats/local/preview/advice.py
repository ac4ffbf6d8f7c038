"""Advice to an owner about a registration: what is lacking, why it matters, what to do."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from mats.domain.capability import Kind
from mats.domain.placement import Placed
from mats.domain.profile import Profile
from mats.domain.registration import Registration
from mats.domain.suspicion import LONG as TOO_LONG
from mats.domain.text import STOP_WORDS, clip, query_terms, split_identifier, stem, words

if TYPE_CHECKING:
    from mats.local.preview.competitors import NearDuplicate
    from mats.local.preview.report import QueryPreview

SPARSE = 8
"""Content words of a description below which it says little."""
LONG = 1_500
"""Characters of a description from which on an encoder does not read to the end (docs/decisions/0003)."""
EXAMPLES = 2
_FEW = 4
_NEAR_TOP = 3


class Weight(StrEnum):
    """How much it matters."""

    MUST = "must"
    """It will be rejected, or flagged as suspicious."""
    SHOULD = "should"
    """It will be found less often."""
    COULD = "could"


class Advice(NamedTuple):
    """One thing to improve."""

    flag: str
    weight: Weight
    what: str
    fix: str


def advice(registration: Registration, profile: Profile) -> tuple[Advice, ...]:
    """What to improve, most important first."""
    found = [*_about_suspicions(profile), *_about_description(registration, profile), *_about_invocation(registration)]
    return tuple(sorted(found, key=lambda one: list(Weight).index(one.weight)))


def _about_suspicions(profile: Profile) -> Iterator[Advice]:
    for reason in profile.suspicious:
        if reason == TOO_LONG:
            yield Advice(
                "very long", Weight.SHOULD, f"all its text together {reason}",
                "shorten it: answers with it carry a warning, and the reranker reads only its beginning",
            )  # fmt: skip
            continue
        yield Advice(
            "suspicious", Weight.MUST, f"its text {reason}",
            "say what it does, to people; every answer with it carries this warning until the text is gone",
        )  # fmt: skip


def _about_description(registration: Registration, profile: Profile) -> Iterator[Advice]:
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


def _about_invocation(registration: Registration) -> Iterator[Advice]:
    schema = registration.input_schema
    if registration.kind is Kind.TOOL and schema is None:
        yield Advice(
            "no schema", Weight.SHOULD, "a tool without an input schema can be found but not be handed to a model",
            "add `input_schema`, the JSON Schema of its input; parameter names and descriptions are searched, too",
        )  # fmt: skip
    if schema and (bare := parameters_without_description(schema)):
        named = ", ".join(f"`{name[:40]}`" for name in bare[:5]) + (" and others" if len(bare) > 5 else "")
        yield Advice(
            "undescribed parameters", Weight.COULD, f"nothing says what these parameters mean: {named}",
            "add a `description` to each property: it is searched, and models fill parameters by it",
        )  # fmt: skip
    if not registration.endpoint and registration.kind is not Kind.SKILL:
        yield Advice(
            "no endpoint", Weight.COULD, "nothing says where it is called", "add `endpoint`, its address or ARN"
        )


def about_id(placed: Placed, registration: Registration) -> Iterator[Advice]:
    """Advice where the id is in use."""
    if placed is Placed.OTHER_KIND:
        yield Advice(
            "taken id", Weight.MUST, f"{registration.id} is registered as another kind",
            "choose another name, or remove it first",
        )  # fmt: skip
    elif placed is Placed.CHANGED:
        yield Advice(
            "replaces", Weight.COULD, f"{registration.id} is registered and would be replaced",
            "make sure that it is yours",
        )  # fmt: skip


def about_places(queries: Iterable["QueryPreview"]) -> Iterator[Advice]:
    """Advice about queries in which the candidate is not first without their help."""
    for one in queries:
        if one.unaided == 1:
            continue
        where = f"at place {one.unaided}" if one.unaided else f"not among the first {one.looked_at}"
        aided = ", unless it contains the query word for word" if one.place != one.unaided else ""
        lacking = [word for word in query_terms(one.query) if word not in one.matched]
        fix = f"say {', '.join(lacking[:5])} in its description" if lacking else "say how it differs from the others"
        weight = Weight.COULD if one.unaided and one.unaided <= _NEAR_TOP else Weight.SHOULD
        yield Advice("outranked", weight, f"{clip(one.query, 80)!r} finds it {where}{aided}", fix)


def about_duplicates(duplicates: Iterable["NearDuplicate"]) -> Iterator[Advice]:
    """Advice about capabilities that are much like the candidate."""
    for one in duplicates:
        if one.same_owner:
            fix = "register one of the two, or say in both what the other is for"
        else:
            fix = "if it is the same thing, register it once; if not, say how it differs"
        near = "" if one.cosine is None else f"cosine {one.cosine:.2f}, "
        what = f"it is similar to {one.id} ({near}{one.overlap:.0%} of the words in common)"
        yield Advice("near-duplicate", Weight.SHOULD, what, fix)


def parameters_without_description(schema: Mapping[str, Any]) -> Sequence[str]:
    """Properties of a schema that have neither a description nor choices nor properties of their own."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return []
    explaining = ("description", "title", "enum", "examples", "const", "properties")
    return [
        str(n) for n, p in properties.items() if not (isinstance(p, Mapping) and any(key in p for key in explaining))
    ]


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
