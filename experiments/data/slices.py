"""Smaller registries out of a data set."""

import random
from dataclasses import replace

from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import SEED


def dense_slice(dataset: Dataset, size: int) -> Dataset:
    """A seeded part of `size` capabilities, two thirds of them relevant to its queries, which have all they ask for."""
    queries = list(dataset.queries)
    random.Random(SEED).shuffle(queries)
    registered = {registration.id: registration for registration in dataset.registrations}
    wanted: dict[Id, None] = {}
    asked: list[JudgedQuery] = []
    for query in queries:
        if len(wanted) < size * 2 // 3 and query.relevant <= registered.keys():
            asked.append(query)
            wanted |= dict.fromkeys(sorted(query.relevant))
    wanted |= dict.fromkeys([id for id in registered if id not in wanted][: size - len(wanted)])
    return replace(dataset, registrations=[registered[id] for id in wanted], queries=asked)
