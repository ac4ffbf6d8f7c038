"""Synthetic registrations for benchmarks of scale: deterministic, no two texts alike."""

import random
from collections.abc import Sequence

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration

_VERBS = (
    "create update delete list search fetch convert translate summarise classify schedule cancel validate merge split "
    "export import upload download monitor rank compare encrypt compress render deploy restore archive notify count"
).split()
_THINGS = (
    "invoice ticket calendar event email contact order payment refund image video audio document spreadsheet table "
    "schema index log metric alert container cluster branch commit issue review customer shipment address route map "
    "forecast recipe playlist article comment survey contract budget asset sensor firmware certificate password token"
).split()
_PLACES = (
    "warehouse hospital school airport bank shop factory farm museum library studio office laboratory harbour stadium "
    "theatre hotel restaurant garage clinic court embassy observatory mine forest reservoir"
).split()
_MANNERS = "quickly safely in bulk on schedule step by step with approval across regions offline in real time".split()


def registrations(count: int, *, seed: int = 7) -> Sequence[Registration]:
    """Registrations of all four kinds, in namespaces of about a hundred each; each name ends with a number, from 0."""
    chance = random.Random(seed)
    return [_registration(chance, number) for number in range(count)]


def _registration(chance: random.Random, number: int) -> Registration:
    verb, thing, other, place = (chance.choice(words) for words in (_VERBS, _THINGS, _THINGS, _PLACES))
    rare = "".join(chance.choice("bcdfglmnprst") + chance.choice("aeiou") for _ in range(4))
    sentences = [
        f"{verb.capitalize()} the {thing} of a {place} {chance.choice(_MANNERS)} using {rare}.",
        f"Takes a {other} and a {chance.choice(_THINGS)}; gives back the {thing} once the {place} has agreed.",
        f"For teams that {chance.choice(_VERBS)} every {chance.choice(_THINGS)} at the {chance.choice(_PLACES)}.",
    ]
    parameters = chance.sample(_THINGS, chance.randint(0, 4))
    return Registration(
        namespace=f"org.synthetic.{place}.{number // 100}",
        name=f"{verb}_{thing}_{rare}_{number}",
        kind=chance.choice(list(Kind)),
        description=" ".join(sentences[: chance.randint(1, 3)]),
        tags=tuple(dict.fromkeys((thing, place))),
        input_schema={
            "type": "object",
            "properties": {f"{p}_id": {"type": "string", "description": f"Which {p} it is about"} for p in parameters},
        },
    )
