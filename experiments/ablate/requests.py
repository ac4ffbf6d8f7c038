"""Requests made from a judged set, for what its own queries cannot show: names, ids, misspelt words, named products."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from string import ascii_lowercase

from mats.domain.capability.capability import Id
from mats.domain.protocols.descriptors import title_of
from mats.domain.protocols.operation_words import spoken_operation
from mats.domain.text.words import STOP_WORDS, content_words, first_sentence, split_identifier
from mats.evaluation.data.datasets import Dataset, JudgedQuery

SEED = 7
MADE = 150  # Requests of each sort, at most
_LONG = 7  # Letters from which on a word can be misspelt and still be recognised
_WORD = re.compile(rf"[a-zA-Z]{{{_LONG},}}")
_GIVES = re.compile(r"(list the|get an?) (.+?)(?: of | in |$)")
_PLAIN = 20  # Requests over a registry of one product
ELSEWHERE = ("Workday", "Dropbox", "Microsoft Teams", "Zendesk", "Trello")  # Products that few sets have


def draw(queries: Sequence[JudgedQuery], most: int) -> list[JudgedQuery]:
    """A seeded sample, in the order of the set."""
    if len(queries) <= most:
        return list(queries)
    chosen = sorted(random.Random(SEED).sample(range(len(queries)), most))
    return [queries[position] for position in chosen]


def names(dataset: Dataset) -> list[JudgedQuery]:
    """Names in words; right is whatever has the same name."""
    same: defaultdict[str, set[Id]] = defaultdict(set)
    for item in dataset.registrations:
        same[split_identifier(item.name).lower()].add(item.id)
    made = [JudgedQuery(f"name {text}", text, frozenset(ids)) for text, ids in same.items() if text.strip()]
    return draw(made, MADE)


def ids(dataset: Dataset) -> list[JudgedQuery]:
    return draw([JudgedQuery(f"id {r.id}", r.id, frozenset({r.id})) for r in dataset.registrations], MADE)


def misspelt(dataset: Dataset) -> list[JudgedQuery]:
    """Judged queries with a fault in one long word: two letters exchanged, one left out, doubled, or another."""
    return draw(list(_misspell(dataset.queries)), MADE)


def _misspell(queries: Sequence[JudgedQuery]) -> Iterator[JudgedQuery]:
    for query in queries:
        chance = random.Random(f"{SEED} {query.id}")
        if found := [match for match in _WORD.finditer(query.text) if match[0].lower() not in STOP_WORDS]:
            match = chance.choice(found)
            at = match.start() + chance.randrange(1, len(match[0]) - 2)
            one, other = query.text[at], query.text[at + 1]
            typed = chance.choice((other + one, other, one + one + other, chance.choice(ascii_lowercase) + other))
            yield replace(query, text=f"{query.text[:at]}{typed}{query.text[at + 2 :]}")


def with_payload(dataset: Dataset) -> list[JudgedQuery]:
    """Judged queries that bring along a text of something else in the set, in quotation marks."""
    texts = [text for item in dataset.registrations if len((text := item.description.replace('"', "")).split()) > _LONG]
    chance = random.Random(SEED)
    return [replace(each, text=f'{each.text}: "{chance.choice(texts)}"') for each in draw(dataset.queries, MADE)]


_OTHER_VERBS = {"create": ("make",), "creates": ("make",)} | dict.fromkeys(
    ("update", "updates", "edit", "edits", "modify", "modifies"), ("change", "edit", "modify")
)


def other_verbs(dataset: Dataset) -> list[JudgedQuery]:
    """First sentences of what makes or edits something, with another verb; right is what the sentence is of."""
    said = ((item.id, first_sentence(item.description).rstrip(".").split()) for item in dataset.registrations)
    return draw(
        [
            JudgedQuery(f"verb {id} {verb}", " ".join((verb, *words[1:])), frozenset({id}))
            for id, words in said
            if 1 < len(words) <= _LONG
            for verb in _OTHER_VERBS.get(words[0].lower(), ())
            if not words[0].lower().startswith(verb)
        ],
        MADE,
    )


def titles(dataset: Dataset) -> list[JudgedQuery]:
    """The words of titles, or of first sentences, the last one first; right is whatever has the same words."""
    same: defaultdict[frozenset[str], set[Id]] = defaultdict(set)
    said = {
        item.id: content_words(title_of(item.descriptor or {}) or first_sentence(item.description))
        for item in dataset.registrations
    }
    for id, words in said.items():
        same[frozenset(words)].add(id)
    made = [
        JudgedQuery(f"title {id}", " ".join(reversed(words)), frozenset(same[frozenset(words)]))
        for id, words in said.items()
        if 2 < len(words) <= _LONG
    ]
    return draw(made, MADE)


def with_provider(dataset: Dataset) -> list[JudgedQuery]:
    """Judged queries that name the provider of a right one, each as `with` or `in` it."""
    providers = {item.id: item.provider for item in dataset.registrations if item.provider}
    made = []
    for number, query in enumerate(draw(dataset.queries, len(dataset.queries))):
        if its := [providers[id] for id in sorted(query.relevant) if id in providers]:
            made.append(replace(query, text=f"{query.text} {('with', 'in')[number % 2]} {its[0]}"))
    return draw(made, MADE)


def shared_names(dataset: Dataset) -> list[JudgedQuery]:
    """Names in words that several providers have, with one of these; right is what this one has of the name."""
    owners: defaultdict[str, defaultdict[str, set[Id]]] = defaultdict(lambda: defaultdict(set))
    for item in dataset.registrations:
        if item.provider:
            owners[split_identifier(item.name).lower()][item.provider].add(item.id)
    return draw(
        [
            JudgedQuery(f"name {name} {provider}", f"{name} in {provider}", frozenset(ids))
            for name, by_provider in owners.items()
            if len(by_provider) > 1
            for provider, ids in by_provider.items()
        ],
        MADE,
    )


_DETERMINER = re.compile(r"\b(?:an?|the|my|our|all|every|each|new) (?=[a-z])")


def one_or_several(dataset: Dataset) -> list[JudgedQuery]:
    """Requests for what operations give: `which bans are there?`, `show this ban`; right is whatever gives it."""
    given: defaultdict[str, set[Id]] = defaultdict(set)
    for item in dataset.registrations:
        if found := _GIVES.match(spoken_operation(item)):
            text = f"which {found[2]} are there?" if found[1] == "list the" else f"show this {found[2]}"
            given[text].add(item.id)
    return draw([JudgedQuery(text, text, frozenset(ids)) for text, ids in given.items()], MADE)


def with_attribute(queries: Sequence[JudgedQuery], product: str) -> Iterator[JudgedQuery]:
    """Those that can name a product before a noun: `create a task` as `create an Asana task`."""
    for query in queries:
        if found := _DETERMINER.search(query.text):
            article = "an " if product[0] in "AEIOUaeiou" else "a "
            kept = article if found[0] in ("a ", "an ") else found[0]
            yield replace(query, text=f"{query.text[: found.start()]}{kept}{product} {query.text[found.end() :]}")


def beside_rated_ones(dataset: Dataset) -> tuple[list[JudgedQuery], dict[Id, int]]:
    """Judged queries that name an unrated provider, and the trust of half of the providers: 90."""
    providers = {item.id: item.provider for item in dataset.registrations if item.provider}
    names = sorted({*providers.values()})
    rated = {*random.Random(SEED).sample(names, len(names) // 2)}
    queries = [each for each in with_provider(dataset) if not rated.intersection(map(providers.get, each.relevant))]
    return queries, {id: 90 for id, provider in providers.items() if provider in rated}


_PLACES = ("{0} in {1}", "{0} via {1}", "{0} in my {1} account", "{0} with {1}", "{0} on {1}", "use {1} to {0}")


def to_be_done_in(product: str, text: str, number: int) -> str:
    """A request with the product where it is to be done, each number in other words."""
    return _PLACES[number % len(_PLACES)].format(text, product)


def with_another_provider(dataset: Dataset) -> list[JudgedQuery]:
    """Judged queries to be done in a product that has no right one; what it has stands for the right ones."""
    items: defaultdict[str, set[Id]] = defaultdict(set)
    for item in dataset.registrations:
        items[item.provider].add(item.id)
    chance, names = random.Random(SEED), sorted(items.keys() - {""})
    named = [(query, chance.choice(names)) for query in draw(dataset.queries, MADE) if names]
    return [
        replace(query, text=to_be_done_in(name, query.text, number), relevant=frozenset(items[name]))
        for number, (query, name) in enumerate(named)
        if items[name].isdisjoint(query.relevant)
    ]


def one_product(dataset: Dataset) -> tuple[Dataset, str]:
    """The registrations of the provider that most queries are for, with a few of these queries, and its name."""
    providers = {item.id: item.provider for item in dataset.registrations if item.provider}
    asked = Counter(provider for query in dataset.queries for provider in {*map(providers.get, query.relevant)})
    del asked[None]
    product = min(asked, key=lambda name: (-asked[name], str(name))) or ""
    items = [item for item in dataset.registrations if item.provider == product]
    own = {item.id for item in items}
    queries = draw([query for query in dataset.queries if query.relevant & own], _PLAIN)
    return replace(dataset, registrations=items, queries=queries), product
