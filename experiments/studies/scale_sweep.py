"""Accuracy against the size of the registry, from ten capabilities to all of them.

A fixed slice of queries is asked of growing registries that hold their gold. Where a registry is too small for all of
that gold, the queries are split over several registries of that size, each with the gold of its queries.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.studies.context import ExperimentContext, first_is_right, has_candidate, share_json
from experiments.variants import SYSTEMS
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import SEED
from mats.evaluation.systems.base import Answers

DATASET = "tools"
QUERIES = 100
SIZES = (10, 25, 50, 100, 250, 500, 1_000, 2_000, 3_000, 4_000, 5_500)
"""And the whole registry: twelve sizes, as in the paper, which names only some of them."""
SINGLE, TWO_STAGE = "full-ctx", "pipeline-bm25"


def scale_sweep(context: ExperimentContext) -> dict[str, Any]:
    dataset = context.dataset(DATASET)
    asked = query_slice(dataset)
    gold = {id for query in asked for id in query.relevant}
    sizes = _sizes(dataset)
    lacking = {name: context.models.lacking(variant.needs) for name, variant in SYSTEMS.items()}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name, why in lacking.items() if not why}
    for size in sizes:
        context.log(f"{DATASET}: {size:,} capabilities")
        parts = list(registries(dataset, asked, size))
        for name, point in _measure(context, parts, list(rows)).items():
            rows[name].append({"size": size, **point})
    systems = {name: rows.get(name) or {"not_run": why} for name, why in lacking.items()}
    return {
        "dataset": DATASET,
        "queries": len(asked),
        "gold": len(gold),
        "sizes": sizes,
        "systems": systems,
        "crossover": _crossover(systems, lacking),
    }


def _sizes(dataset: Dataset) -> list[int]:
    total = len(dataset.registrations)
    return [size for size in SIZES if size < total] + [total]


def query_slice(dataset: Dataset) -> list[JudgedQuery]:
    """A seeded slice of the queries whose gold is all registered."""
    registered = {registration.id for registration in dataset.registrations}
    queries = [query for query in dataset.queries if query.relevant <= registered]
    return sorted(random.Random(SEED).sample(queries, min(QUERIES, len(queries))), key=lambda query: query.id)


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


def _measure(
    context: ExperimentContext, parts: Sequence[Dataset], variants: Sequence[str]
) -> dict[str, dict[str, Any]]:
    answers: dict[str, list[tuple[Answers, Dataset]]] = {name: [] for name in variants}
    for part in parts:
        with context.bench_of(part) as bench:
            for name in variants:
                answers[name].append((SYSTEMS[name].answers(bench), part))
    return {name: _point(each) for name, each in answers.items()}


def _point(answers: Sequence[tuple[Answers, Dataset]]) -> dict[str, Any]:
    """The measures at one size; None if every query failed, as where the registry exceeds a model's window."""
    if all(answer.failed for given, _ in answers for answer in given.values()):
        return {**dict.fromkeys(("match@1", "candidates", "conditional")), "queries": sum(len(g) for g, _ in answers)}
    hits = np.concatenate([first_is_right(given, part) for given, part in answers])
    candidates = np.concatenate([has_candidate(given, part) for given, part in answers])
    return {
        "match@1": share_json(hits),
        "candidates": share_json(candidates),
        "conditional": share_json(hits[candidates > 0]),
        "queries": len(hits),
    }


def _crossover(systems: Mapping[str, Any], lacking: Mapping[str, str]) -> dict[str, Any]:
    """The smallest size from which on two stages stay ahead of one, if there is one."""
    if why := lacking[SINGLE] or lacking[TWO_STAGE]:
        return {"not_run": why}
    ahead = [
        (two["size"], two["match@1"]["mean"] > one["match@1"]["mean"])
        for one, two in zip(systems[SINGLE], systems[TWO_STAGE], strict=True)
        if one["match@1"] and two["match@1"]
    ]
    behind = [size for size, is_ahead in ahead if not is_ahead]
    after = [size for size, is_ahead in ahead if is_ahead and size > max(behind, default=0)]
    return {"single": SINGLE, "two_stage": TWO_STAGE, "size": min(after, default=None)}
