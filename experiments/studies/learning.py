"""The gain from remembered outcomes: learning curves over past requests, known and new ones, and false outcomes.

The production path without a reranker. History of `multitool` is `multitool-history`; of the other sets, one half of
their judged queries, over several splits.
"""

import csv
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure as Canvas

from experiments.report.cells import INTERVALS, Figure, Section, Table, measures, number
from experiments.report.results import measured_only, not_run_notes
from experiments.report.style import legend_below, look_of, panels
from experiments.studies.context import Experiment, ExperimentContext, share_json
from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Receipt, ReportedAnswer, pack_vector
from mats.domain.learning.remembered import Near, Remembered, remember
from mats.domain.learning.voting import RULE, MemoryRule
from mats.domain.ranking.query import Query
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import SEED
from mats.evaluation.results import Json
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.score import dataset_json
from mats.ports import Vector
from mats.usecases.discover import Discover
from mats.usecases.retrieve import Recall

ALIKE = 0.95
"""Cosine from which on two queries are nearly the same, and both are history or both are judged."""
_DIGITS, _SYMBOLS = re.compile(r"\d+"), re.compile(r"\W+")
SETS = ("multitool", "tools", "mcp-tools-closed", "skills", "agents", "models")
OUTCOMES = (0, 100, 500, 1_000, 4_000)
SPLITS = 2
FALSE_SHARE = 0.2
_MULTITOOL, _HISTORY = "multitool", "multitool-history"
_FIVE = 5
_STANDARD, _SAME = 1_000, "standard"
Values = Mapping[str, Sequence[Mapping[str, float]]]
"""For every slice, the measures of each of its queries."""
_MEASURES = ("match@1", "match@15", "complete@5")
_STANDARD = 1_000
_TICKS = (0, 100, 500, 1_000, 4_000)
_SLICES = {"familiar": "known", "new": "new"}
_CHANGED = {"standard": "standard", "false": "false outcomes", "shown": "shown only"}


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


@dataclass(frozen=True, slots=True)
class HistorySplit:
    """Past requests, in random order, and judged queries by slice: familiar ones, and those that are new to it."""

    past: Sequence[Past]
    familiar: Sequence[JudgedQuery]
    new: Sequence[JudgedQuery]


def run(context: ExperimentContext, rule: MemoryRule = RULE) -> dict[str, Any]:
    """Measures of every set after some outcomes; `all` uses the whole history."""
    names = [name for name in SETS if name in context.sets and _has_history(context, name)]
    return {
        "rule": asdict(rule),
        "splits": SPLITS,
        "false_share": FALSE_SHARE,
        "outcomes": OUTCOMES,
        "sets": {name: _set(context, name, rule) for name in names},
    }


def _has_history(context: ExperimentContext, name: str) -> bool:
    return name != _MULTITOOL or (context.data / _HISTORY).is_dir()


def _set(context: ExperimentContext, name: str, rule: MemoryRule) -> dict[str, Any]:
    if lacking := context.models.lacking({"encoder"}):
        return {"not_run": lacking}
    discover = context.bench(name).discover
    context.log(f"{name}: learning")
    measured: dict[str, list[Values]] = {}
    sizes = []
    for split in _splits(context, name, discover):
        sizes.append(len(split.past))
        for label, past in _histories(split.past, len(sizes)).items():
            context.log(f"{name}: split {len(sizes)}, {label} outcomes")
            same = label == _SAME and str(_STANDARD) in measured
            values = measured[str(_STANDARD)][-1] if same else measure_after(discover, past, split, rule)
            measured.setdefault(label, []).append(values)
    return {
        **dataset_json(context.dataset(name)),
        "history": sizes[0],
        "after": {label: _summary(values) for label, values in measured.items()},
    }


def _histories(past: Sequence[Past], seed: int) -> dict[str, Sequence[Past]]:
    """Past requests by label: the numbers of OUTCOMES that there are, and the standard history, changed."""
    standard = past[:_STANDARD]
    numbers = {str(number): past[:number] for number in OUTCOMES if number <= len(past)}
    return {
        **numbers,
        _SAME: standard,
        "false": with_false_outcomes(standard, FALSE_SHARE, seed),
        "shown": only_shown(standard),
    }


def _splits(context: ExperimentContext, name: str, discover: Discover) -> Iterable[HistorySplit]:
    dataset = context.dataset(name)
    if name == _MULTITOOL:
        requests, known = multitool_history(context.data / _HISTORY, dataset)
        rng = np.random.default_rng(SEED)
        chosen = [requests[position] for position in rng.permutation(len(requests))[: max(OUTCOMES)].tolist()]
        familiar = [query for query in dataset.queries if known[query.id]]
        yield HistorySplit(
            _as_past(discover, chosen), familiar, [query for query in dataset.queries if not known[query.id]]
        )
        return
    queries = dataset.queries
    asked = {each.id: each for each in _as_past(discover, queries)}
    vectors = np.array([asked[query.id].vector for query in queries], np.float32)
    for seed in range(SPLITS):
        history, judged = halves(queries, vectors, seed)
        order = np.random.default_rng((SEED, seed)).permutation(len(history)).tolist()
        past = [asked[history[position].id] for position in order]
        reported = frozenset(id for each in past[:_STANDARD] for id in each.used)
        familiar = [query for query in judged if not reported.isdisjoint(query.relevant)]
        yield HistorySplit(past, familiar, [query for query in judged if reported.isdisjoint(query.relevant)])


def _as_past(discover: Discover, queries: Iterable[JudgedQuery]) -> list[Past]:
    """Queries as past requests, with what the pipeline shows without a memory."""
    encoder = discover.retrieve.encoder
    if encoder is None:
        raise ValueError("the memory needs an encoder")
    plain = replace(discover, retrieve=replace(discover.retrieve, recall=None))
    past = []
    for query in queries:
        text = query.text[:LONGEST_QUERY]
        shown = tuple(result.id for result in plain(Query(query=text)).ranked)
        past.append(Past(query.id, text, query.relevant, shown, encoder.encode_query(text)))
    return past


def measure_after(discover: Discover, past: Sequence[Past], split: HistorySplit, rule: MemoryRule) -> Values:
    """The measures of every judged query after these past requests."""
    recall = Recall(memory=HistoryMemory(past), rule=rule)
    learned = replace(discover, retrieve=replace(discover.retrieve, recall=recall))
    slices = {"familiar": split.familiar, "new": split.new}
    return {name: [_measures(learned, query) for query in queries] for name, queries in slices.items()}


def _measures(discover: Discover, query: JudgedQuery) -> dict[str, float]:
    ranked = [each.candidate.profile.id for each in discover(Query(query=query.text[:LONGEST_QUERY])).ranked]
    return {
        "match@1": float(not query.relevant.isdisjoint(ranked[:1])),
        "match@15": float(not query.relevant.isdisjoint(ranked)),
        "complete@5": float(query.relevant.issubset(ranked[:_FIVE])),
    }


def _summary(splits: Sequence[Values]) -> dict[str, Any]:
    """The mean of every measure over the queries of all splits, by slice, with its interval."""
    return {name: _slice([each for values in splits for each in values[name]]) for name in ("familiar", "new")}


def _slice(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    value: Callable[[str], Any] = lambda name: share_json(np.array([row[name] for row in rows]))  # noqa: E731
    return {"queries": len(rows), **{name: value(name) for name in ("match@1", "match@15", "complete@5")}}


def section(results: Json, paper: Json) -> Section:
    sets = measured_only(results["sets"])
    figures = (
        Figure(
            id="learning-curves",
            caption="Match@1 after a number of remembered requests.",
            alt="Two panels with one line for each data set: requests for known capabilities, and for new ones.",
            draw=partial(_curves, sets),
        ),
    )
    return Section(
        id="learning",
        title="Learning from outcomes",
        summary="The pipeline without a reranker, with past requests and what served them as its memory. `multitool` "
        "has a history of its own, and known are the scenes in it; of the other sets, half of each source's queries "
        f"are history ({results['splits']} splits, near-identical queries on one side), and known are queries for "
        "capabilities that it names. Standard: the first 1,000 past requests; "
        f"false: {100 * results['false_share']:.0f} % of them end in another result; shown: only right results that "
        f"were shown. Complete@5: all right ones among the first five. {INTERVALS}",
        tables=(_table(results["sets"]),),
        figures=figures if sets else (),
    )


def _table(sets: Json) -> Table:
    return Table(
        id="learning-sets",
        caption="After remembered requests, %",
        head=("set", "requests", "past", "queries", "match@1", "match@15", "complete@5"),
        rows=tuple(row for name, one in measured_only(sets).items() for row in _rows(name, one)),
        labels=3,
        notes=tuple(not_run_notes(list(sets.items()))),
    )


def _rows(name: str, one: Json) -> Iterator[tuple[str, ...]]:
    for slice_, shown in _SLICES.items():
        for label, measured in one["after"].items():
            row = measured[slice_]
            yield name, shown, _CHANGED.get(label, label), number(row["queries"]), *measures(row, _MEASURES)


def _after(one: Json) -> list[tuple[int, Json]]:
    """The numbers of past requests, ascending, with what was measured; a short history is the last of them."""
    counts = {int(label): measured for label, measured in one["after"].items() if label.isdigit()}
    return sorted({min(one["history"], _STANDARD): one["after"]["standard"], **counts}.items())


def _curves(sets: Json) -> Canvas:
    figure, grid = panels(1, 2, height=5.2, sharey=True)
    for panel, (slice_, title) in zip(grid, _SLICES.items(), strict=True):
        for name, look in look_of(list(sets)).items():
            points = {
                count: 100 * one[slice_]["match@1"]["mean"]
                for count, one in _after(sets[name])
                if one[slice_]["match@1"]
            }
            panel.plot(
                [sqrt(count) for count in points],
                list(points.values()),
                label=name,
                markersize=6,
                **look,
            )
        panel.set(title=f"{title} requests", xlabel="past requests (square root scale)", ylim=(0, 103))
        panel.set_xlim(-1, sqrt(_TICKS[-1]) + 1)
        panel.set_xticks([sqrt(count) for count in _TICKS], [number(count) for count in _TICKS])
        panel.minorticks_off()
        panel.grid(visible=True)
    grid[0].set_ylabel("queries, %")
    legend_below(figure, grid[0], columns=3)
    return figure


EXPERIMENTS = (Experiment(name="learning", place=110, run=run, section=section),)
