"""The registries and queries that experiments ask: whole sets, pools, sources of queries, registries by size."""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from experiments.context import ExperimentContext
from experiments.experiment import Panel
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import SEED

LARGE = ("tools", "agents", "toolret", "toolret-agents")
"""The paper's two large rows, and what stands for them."""


def sets(*names: str) -> Callable[[ExperimentContext], Iterator[Panel]]:
    """The sets of the run as they are; with names, only these, or all of the run where it has none of them."""

    def panels(context: ExperimentContext) -> Iterator[Panel]:
        for name in [each for each in context.sets if each in names] or context.sets:
            yield Panel(name, (context.dataset(name),))

    return panels


def of_queries(label: str, dataset: Dataset, asked: Collection[str]) -> Panel:
    """A part of a set's queries over its whole registry."""
    return Panel(label, (replace(dataset, queries=[query for query in dataset.queries if query.id in asked]),))


def by_source(dataset: Dataset, fewest: int) -> Iterator[Panel]:
    """The queries of each source with at least so many, then those of all smaller sources together."""
    sources: dict[str, list[str]] = defaultdict(list)
    for query in dataset.queries:
        sources[query.source or "unnamed"].append(query.id)
    tail = [ids for ids in sources.values() if len(ids) < fewest]
    for source, ids in sources.items():
        if len(ids) >= fewest:
            yield of_queries(f"{dataset.name}: {source}", dataset, ids)
    if tail:
        yield of_queries(
            f"{dataset.name}: long tail ({len(tail)} sources)", dataset, {id for ids in tail for id in ids}
        )


def pool(
    dataset: Dataset, size: int, level: str = "", change: Callable[[Registration], Registration] | None = None
) -> Panel:
    """A seeded sample of capabilities, changed if wanted, with the queries that have a relevant one in it."""
    chosen = random.Random(SEED).sample(list(dataset.registrations), min(size, len(dataset.registrations)))
    ids = {registration.id for registration in chosen}
    queries = [
        replace(query, relevant=query.relevant & ids) for query in dataset.queries if not query.relevant.isdisjoint(ids)
    ]
    part = replace(dataset, registrations=list(map(change, chosen)) if change else chosen, queries=queries)
    name = ", ".join(filter(None, (f"{dataset.name} ({len(chosen):,})", level)))
    return Panel(level or name, (part,), derived=name)


def by_size(dataset: Dataset, sizes: Sequence[int], asked: int) -> Iterator[Panel]:
    """A seeded slice of queries over growing registries that hold their gold, the whole registry last.

    Where a registry is too small for all of that gold, the queries are split over several registries of that size, each
    with the gold of its queries.
    """
    queries, total = query_slice(dataset, asked), len(dataset.registrations)
    for size in [*(size for size in sizes if size < total), total]:
        yield Panel(f"{size:,}", tuple(registries(dataset, queries, size)), derived=f"{dataset.name}, {size}")


def query_slice(dataset: Dataset, count: int) -> list[JudgedQuery]:
    """A seeded slice of the queries whose gold is all registered."""
    registered = {registration.id for registration in dataset.registrations}
    queries = [query for query in dataset.queries if query.relevant <= registered]
    return sorted(random.Random(SEED).sample(queries, min(count, len(queries))), key=lambda query: query.id)


def registries(dataset: Dataset, queries: Sequence[JudgedQuery], size: int) -> Iterator[Dataset]:
    """The fewest registries of a size that hold the gold of all queries, each query in one of them."""
    by_id = {registration.id: registration for registration in dataset.registrations}
    gold = {id for query in queries for id in query.relevant}
    others = [id for id in by_id if id not in gold]
    random.Random(SEED).shuffle(others)  # one order, so that a larger registry holds every smaller one's distractors
    for part in _split(queries, size):
        gold_ids = sorted({id for query in part for id in query.relevant})
        ids = [*gold_ids, *others[: size - len(gold_ids)]]
        if len(ids) < size:  # the whole registry: the gold of the other parts fills it up
            ids += sorted(gold.difference(gold_ids))[: size - len(ids)]
        yield replace(dataset, registrations=[by_id[id] for id in ids], queries=part)


def _split(queries: Sequence[JudgedQuery], size: int) -> Iterator[list[JudgedQuery]]:
    """Queries in order, split where their gold exceeds a size; a query whose own gold exceeds it is left out."""
    part: list[JudgedQuery] = []
    gold: set[Id] = set()
    for query in queries:
        if len(query.relevant) > size:
            continue
        if len(gold | query.relevant) > size:
            yield part
            part, gold = [], set()
        part.append(query)
        gold |= query.relevant
    yield part
