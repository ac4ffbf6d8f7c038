"""Shared by experiments: the value that each of them is, data sets with their registries, and answers."""

import random
import sys
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from experiments.data.sets import SETS
from experiments.recordings import Recordings
from experiments.report.cells import Section
from experiments.variants import SYSTEMS
from mats.domain.errors import Fault
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, load
from mats.evaluation.measures import SEED, Values
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers, total_failure
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.workbench import Workbench
from mats.ports import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment: how it is run, and what the report says about its results."""

    name: str
    place: int  # Its place in the report, ascending
    run: "Callable[[ExperimentContext], dict[str, Any]] | None" = None
    """Results as JSON, written to `experiment-NAME.json`; None for a decided experiment, of which the section
    stays, and for one with a command of its own."""
    section: Callable[[Json, Json], Section]  # From its results and the paper's numbers
    finding: Callable[[Json], str] = lambda results: ""
    """A sentence for the head of the report; empty if its systems were not run."""


@dataclass(kw_only=True)
class ExperimentContext:
    """Each data set is read, each registry filled and each query answered once, for all experiments."""

    data: Path
    models: Models
    recordings: Recordings | None = None  # The replies of `models`, where they are recorded
    sets: tuple[str, ...] = SETS  # One that is not in the folder of data is skipped with a warning
    model_ids: tuple[str, ...] = ()  # The language models to compare; without any, the configured one
    enriched: bool = False
    """Pipelines with a language model search registries that its writer enriched, as in the paper."""
    _datasets: dict[str, Dataset] = field(default_factory=dict)
    _benches: dict[tuple[str, bool], Workbench] = field(default_factory=dict)
    _answers: dict[tuple[str, str], Answers] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        """Drop the sets that are not in the folder.

        Raises:
            DatasetInvalid: the folder holds none of them.
        """
        asked, self.sets = self.sets, tuple(name for name in self.sets if (self.data / name).is_dir())
        for name in asked:
            if name not in self.sets:
                self.log(f"{self.data} holds no {name}: skipped")
        if not self.sets:
            raise DatasetInvalid([Fault(str(self.data), f"holds none of {', '.join(asked)}: name a folder that does")])
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def dataset(self, name: str) -> Dataset:
        if name not in self._datasets:
            self._datasets[name] = load(self.data / name)
        return self._datasets[name]

    @property
    def large_set(self) -> str:
        """The set of experiments that need a single one: `tools`, or the first where it is not measured."""
        return "tools" if "tools" in self.sets else self.sets[0]

    def bench(self, name: str, *, enriched: bool = False) -> Workbench:
        if (name, enriched) not in self._benches:
            writer = self.models.writer if enriched else None
            bench = self.bench_of(self.dataset(name), writer=writer)
            self._benches[name, enriched] = self._open.enter_context(bench)
        return self._benches[name, enriched]

    def bench_of(self, dataset: Dataset, *, writer: Writer | None = None) -> Workbench:
        """A workbench for any data set, for the caller to close; with a writer its profiles are enriched."""
        return Workbench(dataset=dataset, models=self.models, writer=writer)

    def lacking(self, needs: Collection[str]) -> str:
        """Why a system with these needs cannot answer every query of a set; empty if it can."""
        recorded = self.recordings and "llm" in needs
        return self.models.lacking(needs) or (NOT_RECORDED if recorded else "")

    def answers(self, name: str, variant: str) -> Answers | str:
        """The answers of a system to a set, or the reason why there are none: it cannot run, or every query failed."""
        chosen = SYSTEMS[variant]
        if lacking := self.models.lacking(chosen.needs):
            return lacking
        if chosen.has_llm and not self.asked_part(name, variant).queries:
            return NOT_RECORDED
        if (name, variant) not in self._answers:
            self.log(f"{name}: {variant}")
            bench = self.bench(name, enriched=self.enriched and chosen.has_llm)
            self._answers[name, variant] = chosen.answers(bench, self.asked_part(name, variant).queries)
        answers = self._answers[name, variant]
        if failure := total_failure(answers):
            self.log(f"{name}: {variant}: {failure}")
        return failure or answers

    def result(self, name: str, variant: str, measure: Callable[[Answers, Dataset], dict[str, Any]]) -> dict[str, Any]:
        """The result of `measure` over the answers of a system to a set, or `not_run` with the reason.

        If it was asked fewer queries, `recorded` or `sampled` is their number.
        """
        answers, asked = self.answers(name, variant), self.asked_part(name, variant)
        if isinstance(answers, str):
            return {"not_run": answers}
        if SYSTEMS[variant].has_llm and self.recordings:
            return {"recorded": len(asked.queries), **measure(answers, asked)}
        fewer = {"sampled": len(asked.queries)} if len(asked.queries) < len(self.dataset(name).queries) else {}
        return {**fewer, **measure(answers, asked)}

    def asked_part(self, name: str, variant: str) -> Dataset:
        """The set with the queries that a system is asked: those that its model can answer, a sample of full-ctx."""
        dataset = self.dataset(name)
        known = self._answerable(dataset) if SYSTEMS[variant].has_llm else dataset
        if variant != "full-ctx" or len(known.queries) <= FULL_CONTEXT_QUERIES:
            return known
        return replace(known, queries=random.Random(SEED).sample(list(known.queries), FULL_CONTEXT_QUERIES))

    def _answerable(self, dataset: Dataset) -> Dataset:
        """The data set with the queries that the language model can answer: of recordings, those with a reply."""
        if self.recordings is None:
            return dataset
        known = self.recordings.replied(dataset.name)
        return replace(dataset, queries=[query for query in dataset.queries if query.id in known])

    def to_json(self) -> dict[str, Any]:
        names, recordings = self.models.names, self.recordings
        return {
            "encoder": self.models.encoder.name if self.models.encoder else None,
            "llm": None if names["reranker"] == "none" else names["reranker"],
            "writer": None if names["writer"] == "none" else names["writer"],
            **({"recorded": dict(recordings.counts)} if recordings else {}),
            "prompts": {name: variant.prompt() for name, variant in SYSTEMS.items() if variant.prompt()},
            "sets": {name: dataset.digest for name, dataset in self._datasets.items()},
        }

    def log(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")


FULL_CONTEXT_QUERIES = 500  # Of a set, for the system that reads the whole registry for each of them
NOT_RECORDED = "no recording: set MATS_LLM_URL to a model server, or MATS_BEDROCK=1, and give --max-usd or --max-calls"
OURS, PLAIN_BM25 = "hybrid", "bm25"  # The first stage as shipped, without an LLM, and what it is compared with


def has_candidate(answers: Answers, dataset: Dataset) -> Values:
    """For every query, whether a relevant capability is among the candidates (1 or 0)."""
    return np.array([float(not q.relevant.isdisjoint(answers[q.id].retrieved)) for q in dataset.queries])


def first_is_right(answers: Answers, dataset: Dataset) -> Values:
    """For every query, whether the first result is relevant (1 or 0)."""
    return np.array([float(not q.relevant.isdisjoint(answers[q.id].ranked[:1])) for q in dataset.queries])
