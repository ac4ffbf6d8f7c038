"""Enrichment: raw against enriched profiles with ever less of the owner's text, and without each field."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from experiments.studies.context import ExperimentContext, mcnemar_json
from experiments.variants import SYSTEMS
from mats.domain.capability.registration import Registration
from mats.domain.text.words import first_sentence
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import SEED
from mats.evaluation.systems.base import Answers
from mats.evaluation.systems.score import metrics_json
from mats.evaluation.systems.workbench import Workbench
from mats.ports import NO_LABELS, Labels, Writer, Written

DATASET, POOL = "tools", 1_000
_HINT = 150
"""Characters of the first sentence, as in the paper."""
_WRITTEN = ("summary", "action", "keywords", "positive_examples")
"""Fields of the writer that are searched; negative examples are not."""


def _with_description(registration: Registration, description: str) -> Registration:
    """A registration of name and description, as in the paper's pool."""
    return Registration(
        namespace=registration.namespace, name=registration.name, kind=registration.kind, description=description
    )


LEVELS: Mapping[str, Callable[[Registration], Registration]] = {
    "full": lambda r: _with_description(r, r.description),
    "hint": lambda r: _with_description(r, first_sentence(r.description, _HINT)),
    "name-only": lambda r: _with_description(r, ""),
}

OWNERS_FIELDS: Mapping[str, Callable[[Registration], Registration]] = {
    "description": lambda r: r.model_copy(update={"description": ""}),
    "parameters": lambda r: r.model_copy(update={"input_schema": None, "descriptor": None}),
    "provider and tags": lambda r: r.model_copy(update={"provider": "", "tags": ()}),
}
"""Functions that remove a part of a registration; a name cannot be removed."""


@dataclass(frozen=True, slots=True)
class FieldOmittingWriter:
    writer: Writer
    field: str

    @property
    def name(self) -> str:
        """Differs from the writer's name, so that the profiles have another origin."""
        return f"{self.writer.name} without {self.field}"

    @property
    def prompt(self) -> str:
        return self.writer.prompt

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        written = self.writer.describe(registration, labels)
        empty = "" if self.field in ("summary", "action") else ()
        return replace(written, enrichment=written.enrichment.model_copy(update={self.field: empty}))


def enrichment(context: ExperimentContext) -> dict[str, Any]:
    """Three levels of the owner's text, raw and enriched; then without each part of it, and without each field."""
    pool = sample_pool(context.dataset(DATASET))
    levels = {name: _level(context, _with_registrations(pool, cut)) for name, cut in LEVELS.items()}
    whole, answers = context.dataset(DATASET), context.answers(DATASET, "hybrid")
    return {
        "dataset": DATASET,
        "variant": "hybrid",
        "pool": len(pool.registrations),
        "queries": len(pool.queries),
        "levels": levels,
        "fields": {} if isinstance(answers, str) else _owners_fields(context, whole, answers),
        "written_fields": _written_fields(context, pool),
    }


def sample_pool(dataset: Dataset) -> Dataset:
    """A seeded sample of capabilities with the queries that have a relevant one in it."""
    registrations = random.Random(SEED).sample(list(dataset.registrations), min(POOL, len(dataset.registrations)))
    ids = {registration.id for registration in registrations}
    queries = [
        replace(query, relevant=query.relevant & ids) for query in dataset.queries if not query.relevant.isdisjoint(ids)
    ]
    return replace(dataset, registrations=registrations, queries=queries)


def _with_registrations(dataset: Dataset, change: Callable[[Registration], Registration]) -> Dataset:
    return replace(dataset, registrations=[change(registration) for registration in dataset.registrations])


def _level(context: ExperimentContext, pool: Dataset) -> dict[str, Any]:
    raw = _answers(context.bench_of(pool))
    if lacking := context.models.lacking({"llm"}):
        return {"raw": metrics_json(raw, pool), "enriched": {"not_run": lacking}, "mcnemar": None}
    enriched = _answers(context.bench_of(pool, writer=context.models.writer))
    return {
        "raw": metrics_json(raw, pool),
        "enriched": metrics_json(enriched, pool),
        "mcnemar": mcnemar_json(raw, enriched, pool),
    }


def _owners_fields(context: ExperimentContext, whole: Dataset, answers: Answers) -> dict[str, Any]:
    results = {}
    for name, change in OWNERS_FIELDS.items():
        context.log(f"{DATASET}: without {name}")
        results[name] = _without(answers, context.bench_of(_with_registrations(whole, change)), whole)
    return results


def _written_fields(context: ExperimentContext, pool: Dataset) -> dict[str, Any]:
    if lacking := context.models.lacking({"llm"}):
        return {name: {"not_run": lacking} for name in _WRITTEN}
    writer = context.models.writer
    enriched = _answers(context.bench_of(pool, writer=writer))
    return {
        name: _without(enriched, context.bench_of(pool, writer=FieldOmittingWriter(writer, name)), pool)
        for name in _WRITTEN
    }


def _without(answers: Answers, bench: Workbench, dataset: Dataset) -> dict[str, Any]:
    without = _answers(bench)
    return {"metrics": metrics_json(without, dataset), "mcnemar": mcnemar_json(answers, without, dataset)}


def _answers(bench: Workbench) -> Answers:
    with bench:
        return SYSTEMS["hybrid"].answers(bench)
