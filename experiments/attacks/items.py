"""Registrations of attackers, made from queries or from the registration of a target."""

import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from experiments.attacks.scene import AttackTarget, Scene, Wave, Waves
from mats.domain.capability.registration import Registration
from mats.domain.errors import RegistrationInvalid
from mats.domain.text.fence import visible
from mats.domain.text.words import STOP_WORDS, words

SEED = 7
FLOOD = 20
"""Registrations of one flood, and the number of queries that are flooded, each on its own."""
NAMESPACE = "evil.example"
SUFFIXES = (
    "Fast Quick Cheap Reliable Secure Simple Modern Robust Popular Official Smart Easy Free Premium Verified Global "
    "Instant Scalable Trusted Certified"
).split()
VERBS = ("get it", "create it", "list them all", "update it", "delete it", "search for it", "send it", "check it")
_HOMOGLYPHS = str.maketrans("aceopxyi", "асеорхуі")
_LONGEST_WORD, _LONGEST_SENTENCE, _VOCABULARY = 200, 2_000, 2_000
"""Characters of a tag or a name, and of an example; words of the registry that one description repeats."""
_PADDING = 60
"""Parameters that make near-duplicates look different."""

Fields: TypeAlias = Mapping[str, Any]
Pasted: TypeAlias = Callable[[Sequence[str]], Fields]
"""From queries to the fields of one registration."""
Remade: TypeAlias = Callable[[AttackTarget], Fields]
"""From a target to the fields of one registration."""


def in_description(texts: Sequence[str]) -> Fields:
    return {"description": " ".join(texts)}


def as_examples(texts: Sequence[str]) -> Fields:
    return {"examples": [text[:_LONGEST_SENTENCE] for text in texts]}


def as_negative_examples(texts: Sequence[str]) -> Fields:
    return {"negative_examples": [text[:_LONGEST_SENTENCE] for text in texts]}


def as_tags(texts: Sequence[str]) -> Fields:
    return {"tags": [text[:_LONGEST_WORD] for text in texts]}


def as_name(text: str) -> Fields:
    return {"name": visible(text)[:_LONGEST_WORD]}


def as_parameters(texts: Sequence[str]) -> Fields:
    properties = {f"p{number}": {"type": "string", "description": text} for number, text in enumerate(texts)}
    return {"input_schema": {"type": "object", "properties": properties}}


def everywhere(texts: Sequence[str]) -> Fields:
    return {**in_description(texts), **as_examples(texts), **as_tags(texts), **as_parameters(texts)}


def copy_with(**changes: Callable[[AttackTarget], object]) -> Remade:
    """A copy of the target's registration with these fields replaced."""
    return lambda target: {**target.item.item(), **{name: change(target) for name, change in changes.items()}}


def rewrite(change: Callable[[str], str]) -> Remade:
    """A copy of the target's registration with its description changed, or its name if it has none."""
    return lambda target: {
        **target.item.item(),
        **(
            {"description": change(target.item.description)}
            if target.item.description
            else {"name": change(target.item.name)}
        ),
    }


def one_homoglyph(text: str) -> str:
    """The first letter that has a homoglyph replaced by it."""
    place = next((place for place, letter in enumerate(text) if letter.translate(_HOMOGLYPHS) != letter), len(text))
    return text[: place + 1].translate(_HOMOGLYPHS) + text[place + 1 :]


def some_homoglyphs(text: str) -> str:
    """One homoglyph in every third word."""
    return " ".join(word if n % 3 else one_homoglyph(word) for n, word in enumerate(text.split(" ")))


def all_homoglyphs(text: str) -> str:
    return text.translate(_HOMOGLYPHS)


def zero_width(text: str) -> str:
    """A zero-width space within the first word."""
    return f"{text[:2]}\u200b{text[2:]}"


def half(text: str) -> str:
    """Every second word."""
    return " ".join(text.split()[::2]) or text


def common_words(scene: Scene) -> str:
    """The most frequent words of the registry's descriptions."""
    counts = Counter(word for item in scene.registrations for word in words(item.description) if word not in STOP_WORDS)
    return " ".join(word for word, _ in counts.most_common(_VOCABULARY))


def texts_of(targets: Iterable[AttackTarget]) -> list[str]:
    return [target.query.text for target in targets]


def assistant(fields: Fields, *, number: int = 0, namespace: str = NAMESPACE) -> Registration:
    """A registration with a name that says nothing, unless the fields name it."""
    return Registration.parse({"namespace": namespace, "name": f"assistant-{number}", "kind": "tool", **fields})


def copy_into(fields: Fields, namespace: str) -> Registration:
    """A registration with the fields of another one, in another namespace."""
    kept = {name: value for name, value in fields.items() if name not in ("visible_to", "lifecycle")}
    return Registration.parse({**kept, "namespace": namespace})


def one_item(paste: Pasted) -> Waves:
    """One registration with all queries."""
    return lambda scene: [Wave(items=[assistant(paste(texts_of(scene.targets)))], targets=scene.targets)]


def shared_out(paste: Pasted) -> Waves:
    """FLOOD registrations, each with its share of the queries."""

    def waves(scene: Scene) -> list[Wave]:
        texts = texts_of(scene.targets)
        items = [assistant(paste(texts[n::FLOOD]), number=n) for n in range(FLOOD) if texts[n::FLOOD]]
        return [Wave(items=items, targets=scene.targets)]

    return waves


def permute(paste: Pasted, *, namespaces: int) -> Waves:
    """FLOOD registrations, each with all queries in an order of its own."""

    def waves(scene: Scene) -> list[Wave]:
        texts, chance = texts_of(scene.targets), random.Random(SEED)
        items = [
            assistant(paste(chance.sample(texts, len(texts))), number=n, namespace=_namespace(n, namespaces))
            for n in range(FLOOD)
        ]
        return [Wave(items=items, targets=scene.targets)]

    return waves


def item_each(paste: Callable[[str], Fields]) -> Waves:
    """One registration per query, all at once."""

    def waves(scene: Scene) -> list[Wave]:
        items = [assistant(paste(text), number=n) for n, text in enumerate(texts_of(scene.targets))]
        return [Wave(items=items, targets=scene.targets)]

    return waves


def copy_each(remake: Remade) -> Waves:
    """One copy per target, all at once; equal ones once, and none that is refused."""

    def waves(scene: Scene) -> list[Wave]:
        made = {json.dumps(fields): fields for fields in map(remake, scene.targets)}
        items = list(_valid_copies(made.values()))
        return [Wave(items=items, targets=scene.targets, refused=len(made) - len(items))]

    return waves


def _valid_copies(made: Collection[Fields]) -> Iterator[Registration]:
    """A copy of each, in a namespace of its own, unless it is refused."""
    for number, fields in enumerate(made):
        with suppress(RegistrationInvalid):
            yield copy_into(fields, _namespace(number, len(made)))


def flood(make: Callable[[AttackTarget, int], Registration]) -> Waves:
    """FLOOD registrations against one target; FLOOD targets, one after the other."""

    def waves(scene: Scene) -> list[Wave]:
        return [
            Wave(items=[make(target, n) for n in range(FLOOD)], targets=[target]) for target in scene.targets[:FLOOD]
        ]

    return waves


def near_query(target: AttackTarget, number: int) -> Registration:
    return assistant({"description": f"{target.query.text} {SUFFIXES[number]}."}, number=number)


def padded_query(target: AttackTarget, number: int) -> Registration:
    """The query as tag and example, beside parameters that no other item of the flood has."""
    properties = {f"part{number}x{place}": {"type": "string"} for place in range(_PADDING)}
    pasted = {**as_tags([target.query.text]), **as_examples([target.query.text])}
    schema = {"type": "object", "properties": properties}
    return assistant({**pasted, "input_schema": schema}, number=number, namespace=_namespace(number, FLOOD))


def near_copies(*, namespaces: int) -> Callable[[AttackTarget, int], Registration]:
    """A copy of the target with one word added; in one namespace its name has a number."""

    def make(target: AttackTarget, number: int) -> Registration:
        fields = target.item.item() | {"description": f"{target.item.description} {SUFFIXES[number]}."}
        if namespaces == 1:
            fields["name"] = f"{target.item.name[: _LONGEST_WORD - 4]}-{number}"
        return copy_into(fields, _namespace(number, namespaces))

    return make


def one_by_one(make: Callable[[AttackTarget], Wave | None]) -> Waves:
    """A wave per target, where one can be made."""

    def waves(scene: Scene) -> list[Wave]:
        return [wave for target in scene.targets if (wave := make(target))]

    return waves


def _namespace(number: int, namespaces: int) -> str:
    return NAMESPACE if namespaces == 1 else f"evil-{number % namespaces}.example"
