"""Past requests with their outcomes, for measuring what learning from them brings."""

import csv
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Receipt, ReportedAnswer, pack_vector
from mats.domain.learning.remembered import Near, Remembered, remember
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import SEED
from mats.ports import Vector

ALIKE = 0.95
"""Cosine from which on two queries are nearly the same, and both are history or both are judged."""
_DIGITS, _SYMBOLS = re.compile(r"\d+"), re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Past:
    """A past request with what served it, what was shown, best first, and its vector."""

    id: str
    text: str
    used: frozenset[Id]
    shown: tuple[Id, ...]
    vector: Vector


class HistoryMemory:
    """The port `Memory` over past requests, each of a caller of its own and confirmed."""

    def __init__(self, past: Sequence[Past]) -> None:
        self._memories = [memory for each in past if (memory := _to_memory(each))]
        rows = {each.id: each.vector for each in past}
        self._vectors = np.array([rows[memory.query_id] for memory in self._memories], np.float32)
        self.used = Counter(id for memory in self._memories for id in memory.used)

    def nearest(self, vector: Vector, *, depth: int, without: Collection[str] = ()) -> Sequence[Near]:
        if not self._memories:
            return []
        cosines = self._vectors @ np.asarray(vector, np.float32)
        rows = np.argsort(-cosines, kind="stable")[:depth]
        return [Near(float(cosines[row]), self._memories[row]) for row in rows]

    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> Mapping[Id, int]:
        return {id: self.used[id] for id in ids if id in self.used}


def _to_memory(past: Past) -> Remembered | None:
    receipt = Receipt(
        query_id=past.id,
        text=past.text,
        caller=past.id,
        audiences=frozenset(),
        at="2026-01-01T00:00:00+00:00",
        shown=past.shown,
        encoder="encoder",
        vector=pack_vector(past.vector),
    )
    events = {id: frozenset({Event.SUCCEEDED}) for id in past.used}
    return remember(ReportedAnswer(receipt=receipt, events=events, confirmed=True))


def with_false_outcomes(past: Sequence[Past], share: float, seed: int) -> list[Past]:
    """The same, with this share of them ending in another result that was shown, which is not right."""
    rng = np.random.default_rng((SEED, seed))
    changed = []
    for each in past:
        wrong = [id for id in each.shown if id not in each.used]
        is_false = bool(wrong) and rng.random() < share
        used = frozenset({wrong[rng.integers(len(wrong))]}) if is_false else each.used
        changed.append(Past(each.id, each.text, used, each.shown, each.vector))
    return changed


def only_shown(past: Sequence[Past]) -> list[Past]:
    """Those with a right result among the shown ones, with these only: what callers could have reported."""
    seen = [Past(each.id, each.text, each.used.intersection(each.shown), each.shown, each.vector) for each in past]
    return [each for each in seen if each.used]


def halves(
    queries: Sequence[JudgedQuery], vectors: npt.NDArray[np.float32], seed: int
) -> tuple[list[JudgedQuery], list[JudgedQuery]]:
    """Half of each source's queries as history, the others judged; near-identical ones are on the same side."""
    rng = np.random.default_rng((SEED, seed))
    groups: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for position, group in enumerate(_alike(queries, vectors)):
        groups[queries[position].source][group].append(position)
    history: list[int] = []
    for _, of_source in sorted(groups.items()):
        half, taken = sum(map(len, of_source.values())) / 2, 0
        for group in rng.permutation(sorted(of_source)).tolist():
            if taken + len(of_source[group]) <= half:
                history += of_source[group]
                taken += len(of_source[group])
    chosen = set(history)
    return (
        [queries[position] for position in sorted(chosen)],
        [query for position, query in enumerate(queries) if position not in chosen],
    )


def _alike(queries: Sequence[JudgedQuery], vectors: npt.NDArray[np.float32]) -> list[int]:
    """The group of each query: the same words but for numbers, or nearly the same vector."""
    parent = list(range(len(queries)))

    def find(position: int) -> int:
        while parent[position] != position:
            position = parent[position]
        return position

    first: dict[str, int] = {}
    for position, query in enumerate(queries):
        words = _SYMBOLS.sub(" ", _DIGITS.sub("#", query.text.lower())).strip()
        parent[find(position)] = find(first.setdefault(words, position))
    for one, other in np.argwhere(np.triu(vectors @ vectors.T, 1) >= ALIKE).tolist():
        parent[find(one)] = find(other)
    return [find(position) for position in range(len(queries))]


def multitool_history(data: Path, dataset: Dataset) -> tuple[list[JudgedQuery], Mapping[str, bool]]:
    """Past requests of `multitool`, and for each judged query whether they know its scene."""
    ids = {registration.namespace.rpartition(".")[2]: registration.id for registration in dataset.registrations}
    rows = map(json.loads, gzip.decompress((data / "history.jsonl.gz").read_bytes()).decode().splitlines())
    past = [
        JudgedQuery(row["_id"], row["text"], frozenset(ids[tool.replace("_", "-")] for tool in row["tools"]))
        for row in rows
    ]
    table = gzip.decompress((data / "scenes.tsv.gz").read_bytes()).decode().splitlines()
    known = {row["query-id"]: row["in-history"] == "1" for row in csv.DictReader(table, delimiter="\t")}
    return past, known
