"""One data set: its registry is filled once, and every request is asked of all arms over it."""

import csv
import gzip
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import cycle
from pathlib import Path
from zlib import crc32

from experiments.ablate import requests
from experiments.ablate.attacks import TWO_DAYS, attack_with_table, take_over
from experiments.ablate.measure import (
    Arms,
    Asked,
    Comparison,
    Part,
    Value,
    compare,
    compare_all,
    is_among,
    is_first,
    is_in_five,
    labelled,
    ranked_ids,
    share_in_five,
)
from experiments.attacks.registry import NotBefore
from experiments.attacks.table import make_item
from experiments.attacks.takeovers import RATED
from experiments.data.sets import OPERATIONS, VENDORS
from mats.bootstrap.local import LocalSystem
from mats.domain.capability.registration import Registration
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt, pack_vector
from mats.domain.policies.alike import ALSO
from mats.domain.search.query import Query
from mats.domain.search.verdict import Verdict
from mats.evaluation.data.datasets import EXAMPLES, TASKS, Dataset, JudgedQuery, load, sample
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.workbench import index_changes, registry_of, without_timeouts
from mats.ports import Encoder
from mats.settings import Settings
from mats.usecases.discover import Discover

MADE_OF = ("tools", "mcp-tools-closed", "skills", "agents")  # The sets of which requests are made
MOST = {"tools": 700, "models": 400, "multitool": 400, "mcp-tools-closed": 300}  # Judged queries, at most
PAST, CALLER = 1_000, "caller"  # Past requests of the memory, and whose they are
TAUGHT = 40
_TASKS = "whole tasks, share among the first five"


@dataclass(kw_only=True)
class OpenSet:
    """A data set with its registry and the arms over it. Nothing is shared with other sets."""

    dataset: Dataset
    local: LocalSystem
    encoder: Encoder | None
    policies: Collection[str]
    data: Path

    @cached_property
    def arms(self) -> Arms:
        return Arms.of(without_timeouts(self.local.discover), self.policies)

    def ask(self, queries: Sequence[JudgedQuery], *policies: str, caller: str = "") -> list[Asked]:
        """The answers of the arms without each of these policies, of all by default."""
        arms = self.arms.only(*policies) if policies else self.arms
        return [arms.ask(query, caller=caller) for query in queries] if arms.without else []

    def own(
        self, policy: str, what: str, queries: Sequence[JudgedQuery], value: Value = is_first, part: Part = Part.OWN
    ) -> list[Comparison]:
        """The comparison of one policy on these requests."""
        return compare_all(self.ask(queries, policy), part, what, self.dataset.name, value)


Probe = Callable[[OpenSet], Iterator[Comparison]]


def judged_queries(opened: OpenSet) -> Iterator[Comparison]:
    """Judged queries, for every policy."""
    name = opened.dataset.name
    served = [query for query in opened.dataset.queries if query.relevant]
    asked = opened.ask(requests.draw(served, MOST.get(name, len(served))))
    yield from labelled(asked, name)
    if name in ("livemcp-tasks", "mcp-tools-closed"):
        shares = compare_all(asked, Part.OWN, _TASKS, name, share_in_five)
        yield from (each for each in shares if each.policy == "implied-step")


def sample_tasks(opened: OpenSet) -> Iterator[Comparison]:
    """Tasks over the sample, written before the patterns of the steps."""
    yield from opened.own("implied-step", _TASKS, sample(TASKS).queries, share_in_five)


def made_requests(opened: OpenSet) -> Iterator[Comparison]:
    """Names, ids, misspelt words, named products."""
    dataset = opened.dataset
    yield from opened.own("exact", "names in words", requests.names(dataset))
    yield from opened.own("exact", "ids", requests.ids(dataset))
    yield from opened.own("payload", "a text brought along", requests.with_payload(dataset))
    yield from opened.own("spelling", "one word misspelt", requests.misspelt(dataset))
    yield from opened.own("products", "provider named", requests.with_provider(dataset))
    yield from opened.own("products", "a name of several providers, and one of them", requests.shared_names(dataset))
    yield from opened.own("titles", "words of a title, reversed", requests.titles(dataset))


def one_product(opened: OpenSet) -> Iterator[Comparison]:
    """Requests over a registry of one product, with its name against the same without it."""
    if "products" not in opened.policies:
        return
    dataset, product = requests.one_product(opened.dataset)
    with registry_of(dataset.registrations, opened.local.settings, encoder=opened.encoder) as local:
        arms = Arms.of(without_timeouts(local.discover), ())

        def first(query: JudgedQuery, text: str) -> float:
            return is_first(query, arms.ask(replace(query, text=text)).whole)

        pairs = [(first(each, f"{each.text} in {product}"), first(each, each.text)) for each in dataset.queries]
        yield compare("products", Part.SILENT, "a registry of one product, named", opened.dataset.name, pairs)


def rated_rivals(opened: OpenSet) -> Iterator[Comparison]:
    """Requests that name a provider whom operators have not rated, where they rated half of the others."""
    if "products" not in opened.policies:
        return
    dataset = opened.dataset
    queries, trust = requests.beside_rated_ones(dataset)
    with registry_of(dataset.registrations, opened.local.settings, encoder=opened.encoder, trust=trust) as local:
        arms = Arms.of(without_timeouts(local.discover), ("products",))
        asked = [arms.ask(query) for query in queries]
        yield from compare_all(asked, Part.OWN, "provider named, others rated", dataset.name, is_first)


def _matches(discover: Discover, query: JudgedQuery) -> float:
    """1 if what is first is a match, and none of the right ones."""
    answer = discover.answer(Query.parse({"query": query.text[-LONGEST_QUERY:]}))
    return float(answer.verdict is Verdict.MATCH and answer.results[0].id not in query.relevant)


def _no_match(opened: OpenSet, what: str, queries: Sequence[JudgedQuery]) -> Iterator[Comparison]:
    """Answers in which nothing wrong is a match."""
    arms = opened.arms.only("products")
    for without in arms.without.values():
        pairs = [(1 - _matches(arms.whole, each), 1 - _matches(without, each)) for each in queries]
        yield compare("products", Part.OWN, what, opened.dataset.name, pairs)


def absent_products(opened: OpenSet) -> Iterator[Comparison]:
    """Judged queries to be done in a product, which must not be a match of others, and without it, where one stays."""
    arms, names = opened.arms.only("products"), cycle(requests.ELSEWHERE)
    drawn = requests.draw(opened.dataset.queries, requests.MADE)
    plain = [replace(each, relevant=frozenset()) for each in drawn]  # Nothing is right in a product that is not here
    for without in arms.without.values():
        pairs = [(_matches(arms.whole, each), _matches(without, each)) for each in plain]
        yield compare("products", Part.SILENT, "judged queries: a match", opened.dataset.name, pairs)
    absent = [replace(each, text=requests.to_be_done_in(next(names), each.text, n)) for n, each in enumerate(plain)]
    yield from _no_match(opened, "in a product that is not here: no match", absent)
    others = requests.with_another_provider(opened.dataset)
    yield from _no_match(opened, "in a product that has another: no match", others)


def attributes(opened: OpenSet) -> Iterator[Comparison]:
    """Requests for operations of several products, with the name of one before a noun, in either case."""
    named = ((load(OPERATIONS / vendor).queries, product) for vendor, product in VENDORS.items())
    queries = [
        each
        for queries, product in named
        for name in (product, product.lower())
        for each in requests.with_attribute(queries, name)
        if each.relevant
    ]
    yield from opened.own("products", "a product before a noun: right first", queries)
    yield from _no_match(opened, "a product before a noun: no wrong match", queries)


def lessons(opened: OpenSet) -> Iterator[Comparison]:
    """Requests with a wrong first result are taught; the others are asked beside the lessons."""
    arms = opened.arms.only("lessons")
    if not arms.without or opened.encoder is None:
        return
    known = {item.id for item in opened.dataset.registrations}
    served = [query for query in opened.dataset.queries if query.relevant & known]
    wrong = [query for query in served if not is_first(query, Arms(arms.whole, {}).ask(query).whole)]
    taught = requests.draw(wrong, TAUGHT)
    for query in taught:
        opened.local.teach(query.text, min(query.relevant & known))

    def serves(discover: Discover, query: JudgedQuery) -> float:
        shortlist = discover.answer(Query.parse({"query": query.text[:LONGEST_QUERY]}))
        return is_first(query, ranked_ids(shortlist)) * (shortlist.verdict is Verdict.MATCH)

    pairs = [(serves(arms.whole, query), serves(arms.without["lessons"], query)) for query in taught]
    yield compare("lessons", Part.OWN, "taught requests: first, and a match", opened.dataset.name, pairs)
    rest = [query for query in served if query not in taught]
    yield from opened.own("lessons", "requests beside the lessons", rest, part=Part.SILENT)


def memory(opened: OpenSet) -> Iterator[Comparison]:
    """Requests of known scenes, and of new ones, after the outcomes of past requests."""
    arms, encoder = opened.arms.only("memory"), opened.encoder
    if not arms.without or encoder is None:
        return
    past, known = _history(opened.data / f"{opened.dataset.name}-history", opened.dataset)
    for number, query in enumerate(requests.draw(past, PAST)):
        _report(opened.local, encoder, query, number)
    asked = opened.ask(requests.draw(opened.dataset.queries, MOST["multitool"]), "memory", caller=CALLER)
    familiar = [each for each in asked if known[each.query.id]]
    new = [each for each in asked if not known[each.query.id]]
    yield from compare_all(familiar, Part.OWN, "requests of known scenes", opened.dataset.name)
    yield from compare_all(new, Part.SILENT, "requests of new scenes", opened.dataset.name)


def _history(folder: Path, dataset: Dataset) -> tuple[list[JudgedQuery], Mapping[str, bool]]:
    """Past requests with what served them, and for each judged query whether they know its scene."""
    ids = {item.namespace.rpartition(".")[2]: item.id for item in dataset.registrations}
    rows = map(json.loads, gzip.decompress((folder / "history.jsonl.gz").read_bytes()).decode().splitlines())
    past = [
        JudgedQuery(row["_id"], row["text"], frozenset(ids[tool.replace("_", "-")] for tool in row["tools"]))
        for row in rows
    ]
    table = gzip.decompress((folder / "scenes.tsv.gz").read_bytes()).decode().splitlines()
    return past, {row["query-id"]: row["in-history"] == "1" for row in csv.DictReader(table, delimiter="\t")}


def _report(local: LocalSystem, encoder: Encoder, query: JudgedQuery, number: int) -> None:
    """Record that what serves a past request succeeded."""
    events = dict.fromkeys(query.relevant, Event.SUCCEEDED)
    receipt = Receipt(
        query_id=f"{CALLER} {number:06}",
        text="",
        caller=CALLER,
        audiences=frozenset(),
        at=local.clock.now(),
        shown=tuple(events),
        encoder=encoder.name,
        vector=pack_vector(encoder.encode_query(query.text)),
    )
    outcomes = tuple(Outcome(id, event) for id, event in events.items())
    local.stores.outcomes.record(receipt, Feedback(query_id=receipt.query_id, caller=CALLER, outcomes=outcomes))


def holds(opened: OpenSet) -> Iterator[Comparison]:
    """Requests of a caller that speaks MCP alone, over a registry in which half of the tools can be called so."""
    items = [_callable(item) if crc32(item.id.encode()) % 2 else item for item in opened.dataset.registrations]
    with registry_of(items, opened.local.settings, encoder=opened.encoder) as local:
        arms = Arms.of(without_timeouts(local.discover), {"holds"} & {*opened.policies})
        if not arms.without:
            return
        found = local.stores.index.fetch([item.id for item in items])
        fit = {id for id, profile in found.items() if '"protocol":"mcp"' in profile.invocation}
        plain = [Arms(arms.whole, {}).ask(query) for query in opened.dataset.queries]
        barred = [each.query for each in plain if each.whole and each.whole[0] not in fit]
        asked = [arms.ask(query, holds={"transports": ["mcp"]}) for query in barred]
        yield from compare_all(
            asked, Part.OWN, "first can be called", opened.dataset.name, lambda _, ranked: float(ranked[0] in fit)
        )


def _callable(item: Registration) -> Registration:
    return Registration.parse({**item.item(), "kind": "tool", "endpoint": f"https://{item.namespace}/mcp"})


def takeovers(opened: OpenSet) -> Iterator[Comparison]:
    if opened.encoder:
        yield from take_over(opened.local, opened.dataset, opened.arms, opened.encoder)


def attacks(opened: OpenSet) -> Iterator[Comparison]:
    yield from attack_with_table(opened.local, opened.dataset, opened.arms)


def operations(opened: OpenSet) -> Iterator[Comparison]:
    """Requests of people to public APIs: the half on which nothing was made."""
    kept = [query for query in opened.dataset.queries if query.source.endswith("kept")]
    yield from opened.own("acts", "operations, among the first five", kept, is_in_five)
    yield from opened.own("acts", "made or edited, by another verb", requests.other_verbs(opened.dataset))
    yield from opened.own("acts", "one or several asked for", requests.one_or_several(opened.dataset))


def imported_later(opened: OpenSet) -> Iterator[Comparison]:
    """Requests to an API that is imported two days after the sample."""
    base = sample()
    with registry_of(base.registrations, opened.local.settings, encoder=opened.encoder, trust=base.trust) as local:
        at = (datetime.fromisoformat(local.clock.now()) + TWO_DAYS).isoformat()
        local.stores.registry.put(opened.dataset.registrations)
        index_changes(local, [item.id for item in opened.dataset.registrations], at)
        defences = {"rated", "seniority"}.intersection(opened.policies)  # Those that judge by age and by ratings
        arms = Arms.of(without_timeouts(local.discover), defences).at(NotBefore(local.clock, at))
        asked = [arms.ask(query) for query in opened.dataset.queries if query.relevant]
    yield from compare_all(asked, Part.PRICE, "an API imported two days later: first", opened.dataset.name)
    yield from compare_all(asked, Part.PRICE, "the same, among 15", opened.dataset.name, is_among)


def quoted_requests(opened: OpenSet) -> Iterator[Comparison]:
    """Requests, of which each is the example of an unrelated item that is registered two days after rated ones."""
    if "seniority" not in opened.policies:
        return
    base, queries = opened.dataset, [query for query in opened.dataset.queries if query.relevant]
    trust = dict.fromkeys((item.id for item in base.registrations), RATED)
    with registry_of(base.registrations, opened.local.settings, encoder=opened.encoder, trust=trust) as local:
        at = (datetime.fromisoformat(local.clock.now()) + TWO_DAYS).isoformat()
        items = [make_item({"examples": [query.text]}, n, len(queries)) for n, query in enumerate(queries)]
        local.stores.registry.put(items)
        index_changes(local, [item.id for item in items], at)
        arms = Arms.of(without_timeouts(local.discover), ("seniority",)).at(NotBefore(local.clock, at))
        asked = [arms.ask(query) for query in queries]
    yield from compare_all(asked, Part.OWN, "a request as a newcomer's example, beside rated ones: first", base.name)


def several_products(opened: OpenSet) -> Iterator[Comparison]:
    """Requests that several products serve, of which none is named: answers that name another one with a right one."""
    arms = opened.arms.only("alike")

    def names_another(discover: Discover, query: JudgedQuery) -> float:
        shortlist = discover.answer(Query.parse({"query": query.text}))
        others = query.relevant - {result.id for result in shortlist.ranked[:1]}
        return float(any(f'"{id}"' in note for note in shortlist.notes if note.startswith(ALSO) for id in others))

    overlapping = [
        query for query in opened.dataset.queries if len({id.partition("/")[0] for id in query.relevant}) > 1
    ]
    pairs = [
        (names_another(arms.whole, one), names_another(without, one))
        for without in arms.without.values()
        for one in overlapping
    ]
    if pairs:
        yield compare("alike", Part.OWN, "another product named", opened.dataset.name, pairs)


PROBES: Mapping[str, Sequence[Probe]] = {
    "tools": (judged_queries, made_requests, rated_rivals, absent_products),
    "models": (judged_queries,),
    "multitool": (judged_queries, memory),
    "mcp-tools-closed": (judged_queries, made_requests, one_product, rated_rivals, absent_products),
    "skills": (judged_queries, made_requests, rated_rivals, absent_products, lessons),
    "agents": (judged_queries, made_requests, takeovers),
    "sparse-tools": (judged_queries,),
    "livemcp-tasks": (judged_queries,),
    "mcp-golden": (judged_queries,),
    **dict.fromkeys(VENDORS, (operations, imported_later)),
    "several": (several_products, attributes),
    EXAMPLES.name: (judged_queries, sample_tasks, holds, quoted_requests, attacks),
}
"""The probes of each set, in order: those that change the registry or its memory are last."""


def measure_set(name: str, data: Path, settings: Settings, policies: Collection[str]) -> list[Comparison]:
    """All comparisons over one set."""
    own = OPERATIONS / name
    dataset = sample() if name == EXAMPLES.name else load(own if own.is_dir() else data / name)
    with open_set(dataset, data, settings, policies) as opened:
        found: list[Comparison] = []
        for probe in PROBES[name]:
            say(f"{name}: {probe.__name__.replace('_', ' ')}")
            found += probe(opened)
    say(f"{name}: done")
    return found


@contextmanager
def open_set(dataset: Dataset, data: Path, settings: Settings, policies: Collection[str]) -> Iterator[OpenSet]:
    models = Models(settings)
    with registry_of(dataset.registrations, models.offline, encoder=models.encoder, trust=dataset.trust) as local:
        yield OpenSet(dataset=dataset, local=local, encoder=models.encoder, policies=policies, data=data)


def say(line: str) -> None:
    sys.stderr.write(f"ablate: {line}\n")
