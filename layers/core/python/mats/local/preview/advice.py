"""Advice to an owner about a registration: problem, weight, fix."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration
from mats.domain.capability.suspicion import LONG as TOO_LONG
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import Profile
from mats.domain.protocols.catalogue import invocation_of
from mats.domain.text.words import clip, content_words, query_terms, split_identifier, words
from mats.edge.snippets.capability import WAYS_TO_CALL
from mats.local.preview.competitors import NearDuplicate, QueryPreview

SPARSE = 8
"""A description with fewer content words is sparse."""
LONG = 1_500
"""Characters of a description that an encoder may truncate (docs/decisions/0003)."""
EXAMPLES = 2
_NEAR_TOP = 3


class Weight(StrEnum):
    MUST = "must"
    """It will be rejected, or flagged as suspicious."""
    SHOULD = "should"
    """It will be found less often."""
    COULD = "could"


class Advice(NamedTuple):
    flag: str
    weight: Weight
    what: str
    fix: str


_FIXES = {
    "suspicious": (Weight.MUST, "remove this text; until then, every answer with it carries this warning"),
    "taken id": (Weight.MUST, "choose another name, or remove it first"),
    "very long": (
        Weight.SHOULD,
        "shorten it: answers with it carry a warning, and the reranker reads only its beginning",
    ),
    "no description": (Weight.SHOULD, "add a `description`: its task and its users, in the words of a request"),
    "sparse": (Weight.SHOULD, "add a second sentence with its input, its output and its use"),
    "no examples": (Weight.SHOULD, "add two to five requests it serves, as a user would type them"),
    "no schema": (
        Weight.SHOULD,
        "add `input_schema`, the JSON Schema of its input; parameter names and descriptions are searched, too",
    ),
    "long description": (
        Weight.COULD,
        "describe its task in the first two sentences: an encoder may truncate later ones",
    ),
    "few examples": (Weight.COULD, "add one or two with other words"),
    "opaque name": (Weight.COULD, "name it after its task; if it cannot be renamed, describe the task fully"),
    "undescribed parameters": (
        Weight.COULD,
        "add a `description` to each property: it is searched, and models need it to fill the parameter",
    ),
    "no way to call": (Weight.COULD, ""),
    "replaces": (Weight.COULD, "check that it is yours"),
}
"""The weight of each flag, and how to improve."""


def _advice(flag: str, what: str) -> Advice:
    weight, fix = _FIXES[flag]
    return Advice(flag, weight, what, fix)


def advice(registration: Registration, profile: Profile) -> tuple[Advice, ...]:
    """Advice about the registration by itself, most important first."""
    found = [*_about_suspicions(profile), *_about_description(registration, profile), *_about_invocation(registration)]
    return tuple(sorted(found, key=lambda one: list(Weight).index(one.weight)))


def _about_suspicions(profile: Profile) -> Iterator[Advice]:
    for reason in profile.suspicious:
        if reason == TOO_LONG:
            yield _advice("very long", f"all its text together {reason}")
        else:
            yield _advice("suspicious", f"its text {reason}")


def _about_description(registration: Registration, profile: Profile) -> Iterator[Advice]:
    content = set(content_words(registration.description))
    if not content:
        yield _advice("no description", "its `description` is empty")
    elif len(content) < SPARSE:
        yield _advice("sparse", f"its description has {len(content)} content words")
    elif len(registration.description) > LONG:
        yield _advice("long description", f"its description has {len(registration.description):,} characters")
    if not profile.enrichment.positive_examples:
        yield _advice("no examples", "its `examples` are empty")
    elif len(registration.examples) < EXAMPLES and not profile.enriched:
        yield _advice("few examples", "it has one example only")
    if not any(len(word) > 2 and not word.isdigit() for word in words(split_identifier(registration.name))):
        yield _advice("opaque name", f"its name {registration.name[:60]!r} contains no word")


def _about_invocation(registration: Registration) -> Iterator[Advice]:
    schema = registration.input_schema
    if registration.kind is Kind.TOOL and schema is None:
        yield _advice("no schema", "without `input_schema`, models are told that the tool takes any object")
    if schema and (bare := parameters_without_description(schema)):
        named = ", ".join(f"`{name[:40]}`" for name in bare[:5]) + (" and others" if len(bare) > 5 else "")
        yield _advice("undescribed parameters", f"parameters without a description: {named}")
    if invocation_of(registration) is None:
        weight, fix = _FIXES["no way to call"][0], WAYS_TO_CALL[registration.kind]
        yield Advice("no way to call", weight, "nothing in it says how it is called", fix)


def about_id(placed: Placed, registration: Registration) -> Iterator[Advice]:
    if placed is Placed.OTHER_KIND:
        yield _advice("taken id", f"{registration.id} is registered as another kind")
    elif placed is Placed.CHANGED:
        yield _advice("replaces", f"{registration.id} is registered and would be replaced")


def about_places(queries: Iterable[QueryPreview]) -> Iterator[Advice]:
    """Advice about queries whose answer does not have the candidate first without this example."""
    for one in queries:
        if one.place_unaided == 1:
            continue
        where = f"at place {one.place_unaided}" if one.place_unaided else f"not among the first {one.looked_at}"
        aided = ", unless it contains the query word for word" if one.place != one.place_unaided else ""
        lacking = [word for word in query_terms(one.query) if word not in one.matched]
        fix = f"add {', '.join(lacking[:5])} to its description" if lacking else "describe how it differs from others"
        weight = Weight.COULD if one.place_unaided and one.place_unaided <= _NEAR_TOP else Weight.SHOULD
        yield Advice("outranked", weight, f"{clip(one.query, 80)!r} finds it {where}{aided}", fix)


def about_duplicates(duplicates: Iterable[NearDuplicate]) -> Iterator[Advice]:
    for one in duplicates:
        if one.same_namespace:
            fix = "register only one of the two, or describe in both how they differ"
        else:
            fix = "if both are the same, register only one; if not, describe how they differ"
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
