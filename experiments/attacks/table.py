"""The attacks by registrations.

An attacker may know the judged queries word for word: no real one does, so the result is an upper bound.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from experiments.attacks.scene import SEED, TRUSTED, AttackTarget, Scene, Wave, Waves
from mats.domain.capability.registration import Registration
from mats.domain.errors import RegistrationInvalid
from mats.domain.text.fence import visible
from mats.domain.text.words import STOP_WORDS, words

FLOOD = 20  # Registrations of one flood, and the number of queries that are flooded, each on its own
NAMESPACE = "evil.example"
SUFFIXES = (
    "Fast Quick Cheap Reliable Secure Simple Modern Robust Popular Official Smart Easy Free Premium Verified Global "
    "Instant Scalable Trusted Certified"
).split()
_HOMOGLYPHS = str.maketrans("aceopxyi", "асеорхуі")
_LONGEST_WORD, _LONGEST_SENTENCE, _VOCABULARY = 200, 2_000, 2_000
"""Characters of a tag or a name, and of an example; words of the registry that one description repeats."""
_PADDING = 60  # Parameters that make near-duplicates look different

Texts: TypeAlias = Sequence[str]
Fields: TypeAlias = Mapping[str, Any]


def _sentences(texts: Texts) -> list[str]:
    return [text[:_LONGEST_SENTENCE] for text in texts]


def _parameters(texts: Texts) -> Fields:
    properties = {f"p{number}": {"type": "string", "description": text} for number, text in enumerate(texts)}
    return {"type": "object", "properties": properties}


FIELDS: Mapping[str, Callable[[Texts], object]] = {
    "name": lambda texts: visible(texts[0])[:_LONGEST_WORD],
    "description": " ".join,
    "examples": _sentences,
    "tags": lambda texts: [text[:_LONGEST_WORD] for text in texts],
    "input_schema": _parameters,
}
"""The value of each field of a registration with queries pasted into it."""
EVERYWHERE = ("description", "examples", "tags", "input_schema")


def schema_of(*names: str) -> Fields:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


def make_item(fields: Fields, number: int = 0, namespaces: int = 1) -> Registration:
    """A public registration in one of some namespaces, with a name that says nothing, unless the fields name it."""
    public = {name: value for name, value in fields.items() if name not in ("visible_to", "lifecycle")}
    namespace = NAMESPACE if namespaces == 1 else f"evil-{number % namespaces}.example"
    return Registration.parse({"name": f"assistant-{number}", "kind": "tool", **public, "namespace": namespace})


def _permutations(texts: Texts) -> list[Texts]:
    chance = random.Random(SEED)
    return [chance.sample(texts, len(texts)) for _ in range(FLOOD)]


PARTS: Mapping[str, Callable[[Texts], Sequence[Texts]]] = {
    "whole": lambda texts: [texts],
    "each": lambda texts: [[text] for text in texts],
    "permutations": _permutations,
}
"""The ways to divide queries among registrations."""


def paste(*fields: str, parts: str = "whole", namespaces: int = 1) -> Waves:
    """One registration for each part of the queries, which are pasted into these fields; all at once."""

    def waves(scene: Scene) -> list[Wave]:
        items = [
            make_item({name: FIELDS[name](part) for name in fields}, n, namespaces)
            for n, part in enumerate(PARTS[parts]([target.query.text for target in scene.targets]))
        ]
        return [Wave(items=items, targets=scene.targets)]

    return waves


def flood(make: Callable[[AttackTarget, int], Registration]) -> Waves:
    """FLOOD registrations against one target; FLOOD targets, one after the other."""
    return lambda scene: [
        Wave(items=[make(target, n) for n in range(FLOOD)], targets=[target]) for target in scene.targets[:FLOOD]
    ]


def _near_query(target: AttackTarget, number: int) -> Registration:
    return make_item({"description": f"{target.query.text} {SUFFIXES[number]}."}, number)


def _padded_query(target: AttackTarget, number: int) -> Registration:
    """The query as tag and example, beside parameters that no other item of the flood has."""
    pasted = {name: FIELDS[name]([target.query.text]) for name in ("tags", "examples")}
    schema = schema_of(*(f"part{number}x{place}" for place in range(_PADDING)))
    return make_item({**pasted, "input_schema": schema}, number, FLOOD)


def _near_copies(*, namespaces: int) -> Callable[[AttackTarget, int], Registration]:
    """A copy of the target with one word added; in one namespace its name has a number."""

    def make(target: AttackTarget, number: int) -> Registration:
        fields = target.item.item() | {"description": f"{target.item.description} {SUFFIXES[number]}."}
        if namespaces == 1:
            fields["name"] = f"{target.item.name[: _LONGEST_WORD - 4]}-{number}"
        return make_item(fields, number, namespaces)

    return make


def copies(change: Callable[[AttackTarget], Fields]) -> Waves:
    """A copy of each target with some fields changed, all at once; equal ones once, and none that is refused."""

    def waves(scene: Scene) -> list[Wave]:
        remade = [{**target.item.item(), **change(target)} for target in scene.targets]
        distinct = list({json.dumps(fields): fields for fields in remade}.values())
        items = []
        for number, fields in enumerate(distinct):
            with suppress(RegistrationInvalid):
                items.append(make_item(fields, number, len(distinct)))
        return [Wave(items=items, targets=scene.targets)]

    return waves


def rewrite(change: Callable[[str], str]) -> Waves:
    """A copy of each target with its description changed, or its name if it has none."""

    def changed(target: AttackTarget) -> Fields:
        name = "description" if target.item.description else "name"
        return {name: change(getattr(target.item, name))}

    return copies(changed)


def one_homoglyph(text: str) -> str:
    """The first letter that has a homoglyph replaced by it."""
    place = next((place for place, letter in enumerate(text) if letter.translate(_HOMOGLYPHS) != letter), len(text))
    return text[: place + 1].translate(_HOMOGLYPHS) + text[place + 1 :]


def zero_width(text: str) -> str:
    """A zero-width space within the first word."""
    return f"{text[:2]}\u200b{text[2:]}"


def _common_words(scene: Scene) -> list[Wave]:
    """One registration with the most frequent words of the registry's descriptions."""
    counts = Counter(word for item in scene.registrations for word in words(item.description) if word not in STOP_WORDS)
    text = " ".join(word for word, _ in counts.most_common(_VOCABULARY))
    return [Wave(items=[make_item({"description": text})], targets=scene.targets)]


def _claim_provider(*, named: bool, verified: bool = False) -> Waves:
    """A wave per trusted target with a provider: a copy under the provider's name.

    The query names the provider if `named`; operators have verified it for the target's namespace if `verified`.
    """

    def waves(scene: Scene) -> list[Wave]:
        return [
            Wave(
                items=[make_item(target.item.item())],
                targets=[_name_provider(target) if named else target],
                verified={target.item.namespace: target.item.provider} if verified else {},
            )
            for target in scene.targets
            if scene.trust.get(target.item.id, 0) >= TRUSTED and target.item.provider
        ]

    return waves


def _name_provider(target: AttackTarget) -> AttackTarget:
    query = replace(target.query, id=f"{target.query.id}+", text=f"{target.query.text} with {target.item.provider}")
    return target._replace(query=query)


ATTACKS: Mapping[str, Waves] = {
    "1 item, 50 queries in its description": paste("description"),
    "1 item, 50 queries as examples": paste("examples"),
    "1 item, 50 queries as tags": paste("tags"),
    "1 item, 50 queries as parameter descriptions": paste("input_schema"),
    "1 item, 50 queries everywhere": paste(*EVERYWHERE),
    "1 item, common words of the registry": _common_words,
    "1 item a query, as its description": paste("description", parts="each"),
    "1 item a query, as its example": paste("examples", parts="each"),
    "1 item a query, as its name": paste("name", parts="each"),
    "20 near-duplicates, 50 queries in the description": paste("description", parts="permutations"),
    "20 near-duplicates, 50 queries as examples": paste("examples", parts="permutations"),
    "the same in 20 namespaces": paste("examples", parts="permutations", namespaces=FLOOD),
    "flood: 20 near-duplicates of one query": flood(_near_query),
    "flood: 20 differently padded items of one query": flood(_padded_query),
    "flood: 20 copies of one target, 1 namespace": flood(_near_copies(namespaces=1)),
    "flood: 20 copies of one target, 20 namespaces": flood(_near_copies(namespaces=FLOOD)),
    "copy, exact": copies(lambda _: {}),
    "copy, one word added": rewrite("{} Fast.".format),
    "copy, one homoglyph": rewrite(one_homoglyph),
    "copy, homoglyphs throughout": rewrite(lambda text: text.translate(_HOMOGLYPHS)),
    "copy, one zero-width space": rewrite(zero_width),
    "copy, its description as example": copies(
        lambda target: {"examples": _sentences([target.item.description or target.item.name])}
    ),
    "copy, the query as example": copies(lambda target: {"examples": _sentences([target.query.text])}),
    "claimed provider of a trusted capability": _claim_provider(named=False),
    "the same, the query names it": _claim_provider(named=True),
    "claimed provider that is verified for the target": _claim_provider(named=True, verified=True),
}
