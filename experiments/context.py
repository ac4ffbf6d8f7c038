"""The parts that experiments share in one run: data sets, models, filled registries, and the answers of systems."""

import random
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

from experiments.data.sets import SETS
from experiments.experiment import ALL, RAW, Arm, Asked, Panel
from experiments.recordings import Recordings
from experiments.variants import SYSTEMS
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, Fault
from mats.domain.profile.profile import Enrichment
from mats.domain.prompts.prompt import Written
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, load
from mats.evaluation.measures import SEED
from mats.evaluation.systems.base import LONGEST_QUERY, SystemAnswer, total_failure
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.workbench import Workbench
from mats.ports import NO_LABELS, Labels, Writer
from mats.settings import COHERE, TITAN

FULL_CONTEXT_QUERIES = 500  # Of a registry, for the system that reads the whole of it for each of them
_Key: TypeAlias = tuple[str, ...]  # A registry, what a writer added to it, and a system with its models
NOT_RECORDED = "no recording: set MATS_LLM_URL to a model server, or MATS_BEDROCK=1, and give --max-usd or --max-calls"


@dataclass(frozen=True, slots=True)
class _OneField:
    """A writer of which one field is kept."""

    writer: Writer
    field: str

    @property
    def name(self) -> str:
        """Differs from the writer's name, so that the profiles have another origin."""
        return f"{self.writer.name}, {self.field} only"

    @property
    def prompt(self) -> str:
        return self.writer.prompt

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        written = self.writer.describe(registration, labels)
        return replace(written, enrichment=Enrichment(**{self.field: getattr(written.enrichment, self.field)}))


@dataclass(kw_only=True)
class ExperimentContext:
    """Each set is read, each set's registry filled and each query answered once, for all experiments of a run."""

    data: Path
    models: Models
    recordings: Recordings | None = None  # The replies of `models`, where they are recorded
    sets: tuple[str, ...] = SETS  # One that is not in the folder of data is skipped with a warning
    model_ids: tuple[str, ...] = ()  # The language models to compare; without any, the configured one
    encoders: tuple[str, ...] = ()  # The encoders to compare beside the configured one
    enriched: bool = False
    """Pipelines with a language model search registries that its writer enriched, as in the paper."""
    _datasets: dict[str, Dataset] = field(default_factory=dict)
    _models: dict[tuple[str, str], Models] = field(default_factory=dict)
    _benches: dict[tuple[str | int, ...], Workbench] = field(default_factory=dict)
    _empty: dict[tuple[str, str], int] = field(default_factory=dict)  # Summaries, by registry and what was written
    _answers: dict[_Key, dict[str, SystemAnswer]] = field(default_factory=dict)
    _matched: dict[tuple[_Key, str], tuple[int, int]] = field(default_factory=dict)  # Of an answer's recorded reply
    _open: ExitStack = field(default_factory=ExitStack)
    _derived: ExitStack = field(default_factory=ExitStack)

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
        self.close_derived()
        self._open.close()

    def close_derived(self, but: str = "") -> None:
        """Remove the registries that were made from sets, if they have another name: no other panel asks them."""
        if any(key[0] not in ("", but) for key in self._benches):
            self._derived.close()
            self._benches = {key: bench for key, bench in self._benches.items() if not key[0]}

    def dataset(self, name: str) -> Dataset:
        if name not in self._datasets:
            self._datasets[name] = load(self.data / name)
        return self._datasets[name]

    @property
    def large_set(self) -> str:
        """The set of experiments that need a single one: `tools` or the paper's, or the first where neither is."""
        return next((name for name in ("tools", "toolret") if name in self.sets), self.sets[0])

    def models_of(self, one: Arm) -> Models:
        """The models of the settings, with those that an arm names."""
        key = (one.model, one.encoder)
        if not any(key):
            return self.models
        if key not in self._models:
            settings = self.models.settings
            changed = replace(
                settings, rerank_model=one.model or settings.rerank_model, encoder=one.encoder or settings.encoder
            )
            self._models[key] = replace(self.models, settings=changed)
        return self._models[key]

    def lacking(self, panel: Panel, one: Arm) -> str:
        """Why an arm cannot be asked the queries of a panel; empty if it can, or can answer some."""
        if one.encoder.startswith((TITAN, COHERE)) and not self.models.settings.bedrock:
            return f"set MATS_BEDROCK=1 with AWS credentials for {one.encoder}"
        try:
            why = one.not_run or self.models_of(one).lacking(one.needs)
        except DependencyFailed as error:  # an encoder that cannot be loaded
            return f"{one.encoder or self.models.settings.encoder}: {error}"
        needs_llm = self.recordings and "llm" in one.needs
        return why or (NOT_RECORDED if needs_llm and (panel.derived or one.model) else "")

    def ask(self, panel: Panel, one: Arm, before: Arm | None) -> Asked | str:
        """The answers of an arm to a panel, or why there are none: it cannot run, or every query failed."""
        if why := self.lacking(panel, one):
            return why
        parts = [self._asked_part(part, one) for part in panel.parts]
        answers = self._answers_of(panel, parts, one)
        if not answers:
            return NOT_RECORDED
        if failure := total_failure(answers):
            self.log(f"{panel.label}: {one.label}: {failure}")
            return failure
        queries = [replace(query, id=f"{part.name}/{query.id}") for part in parts for query in part.queries]
        answered_before = (
            before
            and not self.lacking(panel, before)
            and all(self._asked_part(part, before).queries == part.queries for part in parts)
        )
        return Asked(
            panel=panel,
            answers=answers,
            dataset=replace(panel.parts[0], queries=queries),
            before=self._answers_of(panel, parts, before) if before and answered_before else None,
            defined=one.system.measures,
            recorded=self._replays(one),
            empty_summaries=self._empty.get((panel.derived or panel.parts[0].name, self._writes(one))),
        )

    def _replays(self, one: Arm) -> bool:
        return self.recordings is not None and one.system.has_llm

    def _answers_of(self, panel: Panel, parts: Sequence[Dataset], one: Arm) -> dict[str, SystemAnswer]:
        """By the set and the id of a query: sets may share ids."""
        return {
            f"{part.name}/{id}": answer for part in parts for id, answer in self._answers_to(panel, part, one).items()
        }

    def counts(self, panel: Panel, one: Arm) -> dict[str, Any]:
        """How many queries of a panel an arm was asked, if not all, and how well recorded replies matched."""
        parts = [(part, self._asked_part(part, one)) for part in panel.parts]
        asked = sum(len(part.queries) for _, part in parts)
        if self._replays(one):
            keys = [(self._key(panel, whole, one), query.id) for whole, part in parts for query in part.queries]
            scored, unmatched = map(sum, zip(*(self._matched[key] for key in keys), strict=True))
            return {"recorded": asked, "matched": round(scored / max(1, scored + unmatched), 4)}
        return {"sampled": asked} if asked < panel.queries else {}

    def _asked_part(self, part: Dataset, one: Arm) -> Dataset:
        """The part with the queries that an arm is asked: those that its model can answer, a sample of full-ctx."""
        if self.recordings and one.system.has_llm:
            known = self.recordings.replied(part.name)
            part = replace(part, queries=[query for query in part.queries if query.id in known])
        if one.system.name == "full-ctx" and len(part.queries) > FULL_CONTEXT_QUERIES:
            return replace(part, queries=random.Random(SEED).sample(list(part.queries), FULL_CONTEXT_QUERIES))
        return part

    def _answers_to(self, panel: Panel, part: Dataset, one: Arm) -> dict[str, SystemAnswer]:
        """The answers to the queries of a part; each query is asked once of each registry."""
        key = self._key(panel, part, one)
        known = self._answers.setdefault(key, {})
        if missing := [query for query in part.queries if query.id not in known]:
            self.log(f"{panel.label}: {one.label}, {len(missing):,} queries")
            known |= one.system.answers(self._bench(panel, part, one), missing)
            if self.recordings and one.system.has_llm:
                self._matched |= {
                    (key, query.id): self.recordings.matches(query.text[:LONGEST_QUERY]) for query in missing
                }
        return {query.id: known[query.id] for query in part.queries}

    def _key(self, panel: Panel, part: Dataset, one: Arm) -> _Key:
        return panel.derived or part.name, self._writes(one), one.system.name, one.model, one.encoder

    def _writes(self, one: Arm) -> str:
        if one.writes is None:
            return ALL if self.enriched and one.system.has_llm else RAW
        return one.writes

    def _bench(self, panel: Panel, part: Dataset, one: Arm) -> Workbench:
        writes = self._writes(one)
        key = panel.derived, id(part.registrations), writes, one.model, one.encoder
        if key not in self._benches:
            models = self.models_of(one)
            writer = models.writer if writes == ALL else _OneField(models.writer, writes) if writes else None
            bench = Workbench(dataset=part, models=models, writer=writer)
            self._benches[key] = (self._derived if panel.derived else self._open).enter_context(bench)
            if writer:
                profiles = bench.discover.index.fetch([each.id for each in part.registrations])
                self._empty[panel.derived or part.name, writes] = sum(
                    not each.enrichment.summary for each in profiles.values()
                )
        return self._benches[key]

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
