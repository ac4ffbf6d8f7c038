"""The attacks by registrations."""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from experiments.attacks.scene import NOTHING, QUERIES, REGISTRATION, SEED, Attack, AttackTarget, Scene, Wave, Waves
from mats.domain.capability.capability import Id, Lifecycle, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import RegistrationInvalid
from mats.domain.text.fence import visible
from mats.domain.text.words import STOP_WORDS, words
from mats.evaluation.data.datasets import JudgedQuery

FLOOD = 20  # Registrations of one flood, and the number of queries that are flooded, each on its own
NAMESPACE = "evil.example"
SUFFIXES = (
    "Fast Quick Cheap Reliable Secure Simple Modern Robust Popular Official Smart Easy Free Premium Verified Global "
    "Instant Scalable Trusted Certified"
).split()
VERBS = ("get it", "create it", "list them all", "update it", "delete it", "search for it", "send it", "check it")
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
    "negative_examples": _sentences,
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


def half(text: str) -> str:
    """Every second word."""
    return " ".join(text.split()[::2]) or text


def _permutations(texts: Texts) -> list[Texts]:
    chance = random.Random(SEED)
    return [chance.sample(texts, len(texts)) for _ in range(FLOOD)]


PARTS: Mapping[str, Callable[[Texts], Sequence[Texts]]] = {
    "whole": lambda texts: [texts],
    "each": lambda texts: [[text] for text in texts],
    "each_half": lambda texts: [[half(text)] for text in texts],
    "shares": lambda texts: [share for n in range(FLOOD) if (share := texts[n::FLOOD])],
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


def some_homoglyphs(text: str) -> str:
    """One homoglyph in every third word."""
    return " ".join(word if n % 3 else one_homoglyph(word) for n, word in enumerate(text.split(" ")))


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
            if target.item.id in scene.trusted and target.item.provider
        ]

    return waves


def _name_provider(target: AttackTarget) -> AttackTarget:
    query = replace(target.query, id=f"{target.query.id}+", text=f"{target.query.text} with {target.item.provider}")
    return target._replace(query=query)


def _deprecated_twins(trust: int | None = None) -> Waves:
    """A wave per target that is not deprecated itself."""

    def wave(target: AttackTarget) -> Wave:
        namespace = f"{parts(target.item.id)[0]}.v0"
        twin = Registration.parse(target.item.item() | {"lifecycle": "deprecated", "namespace": namespace})
        return Wave(items=[twin], targets=[target], trust={} if trust is None else {twin.id: trust})

    return lambda scene: [wave(target) for target in scene.targets if target.item.lifecycle is not Lifecycle.DEPRECATED]


def _stock_query(scene: Scene) -> list[Wave]:
    """A query in the words of no trusted capability, with the right capability in the registry, unrated."""
    stock = Registration.parse(
        {
            "namespace": "com.example.erp",
            "name": "getStock",
            "kind": "tool",
            "description": "Returns the stock level of an article in a warehouse.",
            "input_schema": schema_of("sku", "warehouse"),
        }
    )
    text = "how many units of SKU 4711 do we have left in Hamburg?"
    target = AttackTarget(JudgedQuery("stock", text, frozenset({Id(stock.id)})), stock)
    return [Wave(items=[stock], targets=[target], attackers=scene.trusted)] if scene.trusted else []


ATTACKS = (
    Attack("1 item, 50 queries in its description", QUERIES, paste("description")),
    Attack("1 item, 50 queries as examples", QUERIES, paste("examples")),
    Attack("1 item, 50 queries as tags", QUERIES, paste("tags")),
    Attack("1 item, 50 queries as parameter descriptions", QUERIES, paste("input_schema")),
    Attack("1 item, 50 queries everywhere", QUERIES, paste(*EVERYWHERE)),
    Attack("1 item, 50 queries as negative examples", QUERIES, paste("negative_examples")),
    Attack("1 item, common words of the registry", REGISTRATION, _common_words),
    Attack("1 item a query, as its description", QUERIES, paste("description", parts="each")),
    Attack("1 item a query, as its example", QUERIES, paste("examples", parts="each")),
    Attack("1 item a query, as its name", QUERIES, paste("name", parts="each")),
    Attack("1 item a query, half its words as example", QUERIES, paste("examples", parts="each_half")),
    Attack("20 items, 2-3 queries each, description", QUERIES, paste("description", parts="shares")),
    Attack("20 items, 2-3 queries each, everywhere", QUERIES, paste(*EVERYWHERE, parts="shares")),
    Attack("20 near-duplicates, 50 queries in the description", QUERIES, paste("description", parts="permutations")),
    Attack("20 near-duplicates, 50 queries as examples", QUERIES, paste("examples", parts="permutations")),
    Attack("the same in 20 namespaces", QUERIES, paste("examples", parts="permutations", namespaces=FLOOD)),
    Attack("flood: 20 near-duplicates of one query", QUERIES, flood(_near_query)),
    Attack("flood: 20 differently padded items of one query", QUERIES, flood(_padded_query)),
    Attack("flood: 20 copies of one target, 1 namespace", REGISTRATION, flood(_near_copies(namespaces=1))),
    Attack("flood: 20 copies of one target, 20 namespaces", REGISTRATION, flood(_near_copies(namespaces=FLOOD))),
    Attack("copy, exact", REGISTRATION, copies(lambda _: {})),
    Attack("copy, one word added", REGISTRATION, rewrite("{} Fast.".format)),
    Attack("copy, one homoglyph", REGISTRATION, rewrite(one_homoglyph)),
    Attack("copy, a few homoglyphs", REGISTRATION, rewrite(some_homoglyphs)),
    Attack("copy, homoglyphs throughout", REGISTRATION, rewrite(lambda text: text.translate(_HOMOGLYPHS))),
    Attack("copy, one zero-width space", REGISTRATION, rewrite(zero_width)),
    Attack(
        "copy, its description as example",
        REGISTRATION,
        copies(lambda target: {"examples": _sentences([target.item.description or target.item.name])}),
    ),
    Attack("copy, common verbs as examples", REGISTRATION, copies(lambda _: {"examples": VERBS})),
    Attack("copy, the query as example", QUERIES, copies(lambda target: {"examples": _sentences([target.query.text])})),
    Attack("claimed provider of a trusted capability", REGISTRATION, _claim_provider(named=False)),
    Attack("the same, the query names it", REGISTRATION, _claim_provider(named=True)),
    Attack(
        "claimed provider that is verified for the target", REGISTRATION, _claim_provider(named=True, verified=True)
    ),
    Attack("deprecated twin", NOTHING, _deprecated_twins()),
    Attack("deprecated twin rated 90", NOTHING, _deprecated_twins(90)),
    Attack("trusted capabilities of another task", NOTHING, _stock_query),
)
