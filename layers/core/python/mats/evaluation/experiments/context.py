"""Where experiments are done: the data sets, their registries, and every answer that was already given."""

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from mats.domain.errors import Fault
from mats.evaluation.data.datasets import SETS, Dataset, DatasetInvalid, load
from mats.evaluation.measures import Estimate, Values, estimate, per_query
from mats.evaluation.systems.base import Answers, ask, run_of
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.costs import Forecast, forecast
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.workbench import Workbench
from mats.ports import Writer


@dataclass(kw_only=True)
class Lab:
    """Data sets are read, registries filled and queries answered once, however many experiments need them.

    Args:
        data: The folder of judged data sets.
        models: What may be asked.
        sets: Which of the sets; those that are not in the folder are left out, and said so.
        examples: Where texts of real failures go: they may not be part of the results.
    """

    data: Path
    models: Models
    sets: tuple[str, ...] = SETS
    examples: Path | None = None
    _datasets: dict[str, Dataset] = field(default_factory=dict)
    _benches: dict[str, Workbench] = field(default_factory=dict)
    _answers: dict[tuple[str, str], Answers] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        """Look which of the sets there are.

        Raises:
            DatasetInvalid: none.
        """
        for name in self.sets:
            if not (self.data / name).is_dir():
                self.tell(f"{self.data} holds no {name}; it is left out")
        there = tuple(name for name in self.sets if (self.data / name).is_dir())
        if not there:
            raise DatasetInvalid([Fault(str(self.data), f"holds none of {', '.join(self.sets)}")])
        self.sets = there
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def dataset(self, name: str) -> Dataset:
        """A data set of the folder.

        Raises:
            DatasetInvalid: it is not there or cannot be read.
        """
        if name not in self._datasets:
            self._datasets[name] = load(self.data / name)
        return self._datasets[name]

    def bench(self, name: str) -> Workbench:
        """The workbench of a data set."""
        if name not in self._benches:
            self._benches[name] = self._open.enter_context(self.bench_of(self.dataset(name)))
        return self._benches[name]

    def bench_of(self, dataset: Dataset, *, writer: Writer | None = None) -> Workbench:
        """A workbench for any data set, for the caller to close; with a writer its profiles are enriched."""
        return Workbench(dataset=dataset, settings=self.models.settings, models=self.models, writer=writer)

    def answers(self, name: str, variant: str) -> Answers | str:
        """What a variant answers to every query of a set, or why it cannot run."""
        chosen = VARIANTS[variant]
        if lacking := self.models.lacking(chosen.needs):
            return lacking
        if (name, variant) not in self._answers:
            self.tell(f"{name}: {variant}")
            system = chosen.built(self.bench(name))
            at_once = self.models.at_once(chosen.needs)
            self._answers[name, variant] = ask(system, self.dataset(name).queries, at_once=at_once)
        return self._answers[name, variant]

    def used(self) -> dict[str, Any]:
        """Which models and prompts the variants of these experiments ask, as results have it."""
        settings = self.models.settings
        return {
            "encoder": self.models.encoder.name if self.models.encoder else None,
            "llm": settings.rerank_model if settings.bedrock else None,
            "writer": settings.writer_model if settings.bedrock else None,
            "prompts": {name: variant.prompt() for name, variant in VARIANTS.items() if variant.prompt()},
            "sets": {name: dataset.digest for name, dataset in self._datasets.items()},
        }

    def forecasts(self, bench: Workbench, what: str) -> list[Forecast]:
        """What every variant that asks a model takes on a workbench; nothing where no model may be asked."""
        return [
            replace(forecast(variant, bench), what=f"{what}: {variant.name}")
            for variant in VARIANTS.values()
            if "llm" in variant.needs and not self.models.lacking(variant.needs)
        ]

    def tell(self, text: str) -> None:
        """One line for who waits."""
        sys.stderr.write(f"{text}\n")

    def keep_examples(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Put real texts where they can be read and are no part of the results."""
        if self.examples is None:
            return
        self.examples.mkdir(parents=True, exist_ok=True)
        path = self.examples / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        self.tell(f"{len(rows)} examples in {path}")


def rounded(value: Estimate) -> dict[str, float]:
    """An estimate as results have it."""
    return {name: round(number, 4) for name, number in asdict(value).items()}


def share(values: Values) -> dict[str, float] | None:
    """The mean of per-query values with its interval; None where there are none."""
    return rounded(estimate(values)) if len(values) else None


def metrics(answers: Answers, dataset: Dataset) -> dict[str, dict[str, float]]:
    """Every measure with its interval."""
    return {name: rounded(estimate(v)) for name, v in per_query(run_of(answers), dataset.queries).items()}


def some(measures: Mapping[str, dict[str, float]], *names: str) -> dict[str, dict[str, float]]:
    """Only these measures."""
    return {name: measures[name] for name in names}


def found(answers: Answers, dataset: Dataset) -> Values:
    """For every query, whether anything right is among the candidates (1 or 0)."""
    return np.array(
        [float(any(id in query.relevant for id in answers[query.id].retrieved)) for query in dataset.queries]
    )


def first(answers: Answers, dataset: Dataset) -> Values:
    """For every query, whether the first answer is right (1 or 0)."""
    return np.array(
        [float(any(id in query.relevant for id in answers[query.id].ranked[:1])) for query in dataset.queries]
    )
