"""4 · What enrichment is worth: raw against enriched as the owner's text is taken away, and what each field adds."""

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from mats.domain.registration import Registration
from mats.domain.text import first_sentence
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.experiments.context import ExperimentContext, first_is_right
from mats.evaluation.measures import SEED, mcnemar
from mats.evaluation.systems.base import Answers, ask
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.costs import CostEstimate, estimate_writing_cost
from mats.evaluation.systems.score import metrics_json
from mats.evaluation.systems.workbench import Workbench
from mats.ports import Writer, Written

DATASET, POOL = "tools", 1_000
_HINT = 150
"""Characters of the first sentence, as in the paper."""
_WRITTEN = ("summary", "action", "keywords", "positive_examples")
"""Fields a writer fills that are searched; negative examples are not."""


def _only(registration: Registration, description: str) -> Registration:
    """What the paper's pool has of a tool: a name and a description."""
    return Registration(
        namespace=registration.namespace, name=registration.name, kind=registration.kind, description=description
    )


LEVELS: Mapping[str, Callable[[Registration], Registration]] = {
    "full": lambda r: _only(r, r.description),
    "hint": lambda r: _only(r, first_sentence(r.description, _HINT)),
    "name-only": lambda r: _only(r, ""),
}

OWNERS_FIELDS: Mapping[str, Callable[[Registration], Registration]] = {
    "description": lambda r: r.model_copy(update={"description": ""}),
    "parameters": lambda r: r.model_copy(update={"input_schema": None, "descriptor": None}),
    "provider and tags": lambda r: r.model_copy(update={"provider": "", "tags": ()}),
}
"""Parts of a registration, and the registration without them; a name cannot be taken away."""


@dataclass(frozen=True, slots=True)
class Omitting:
    """A writer one of whose fields is left empty."""

    writer: Writer
    field: str

    @property
    def name(self) -> str:
        """The writer's own; what is left out makes another origin."""
        return f"{self.writer.name} without {self.field}"

    @property
    def prompt(self) -> str:
        """The writer's own."""
        return self.writer.prompt

    def describe(self, registration: Registration) -> Written:
        """The writer's own, with one field emptied."""
        written = self.writer.describe(registration)
        empty = "" if self.field in ("summary", "action") else ()
        return replace(written, enrichment=written.enrichment.model_copy(update={self.field: empty}))


def enrichment(context: ExperimentContext) -> dict[str, Any]:
    """Three levels of the owner's text, raw and enriched; then each part of it, and each written field, left out."""
    pool = sample_pool(context.dataset(DATASET))
    levels = {name: _level(context, _changed(pool, cut)) for name, cut in LEVELS.items()}
    whole = context.dataset(DATASET)
    answers = context.answers(DATASET, "hybrid")
    return {
        "dataset": DATASET,
        "variant": "hybrid",
        "pool": len(pool.registrations),
        "queries": len(pool.queries),
        "levels": levels,
        "fields": {} if isinstance(answers, str) else _owners_fields(context, whole, answers),
        "written_fields": _written_fields(context, pool),
    }


def estimate_costs(context: ExperimentContext) -> list[CostEstimate]:
    """The cost of describing the pool at every level."""
    if context.models.lacking({"llm"}):
        return []
    pool = sample_pool(context.dataset(DATASET))
    settings, size = context.models.settings, len(pool.registrations)
    return [estimate_writing_cost(settings, size, what=f"describing {name} {DATASET}") for name in LEVELS]


def sample_pool(dataset: Dataset) -> Dataset:
    """A seeded pool of capabilities with the queries that something in it answers."""
    registrations = random.Random(SEED).sample(list(dataset.registrations), min(POOL, len(dataset.registrations)))
    kept = {registration.id for registration in registrations}
    queries = [
        replace(query, relevant=query.relevant & kept)
        for query in dataset.queries
        if not query.relevant.isdisjoint(kept)
    ]
    return replace(dataset, registrations=registrations, queries=queries)


def _changed(dataset: Dataset, change: Callable[[Registration], Registration]) -> Dataset:
    return replace(dataset, registrations=[change(registration) for registration in dataset.registrations])


def _level(context: ExperimentContext, pool: Dataset) -> dict[str, Any]:
    raw = _answers(context.bench_of(pool))
    lacking = context.models.lacking({"llm"})
    if lacking:
        return {"raw": metrics_json(raw, pool), "enriched": {"not_run": lacking}, "mcnemar": None}
    enriched = _answers(context.bench_of(pool, writer=context.models.writer))
    return {
        "raw": metrics_json(raw, pool),
        "enriched": metrics_json(enriched, pool),
        "mcnemar": asdict(mcnemar(first_is_right(raw, pool), first_is_right(enriched, pool))),
    }


def _owners_fields(context: ExperimentContext, whole: Dataset, answers: Answers) -> dict[str, Any]:
    """The whole set, without each part of what owners write."""
    measured = {}
    for name, change in OWNERS_FIELDS.items():
        context.log(f"{DATASET}: without {name}")
        less = _answers(context.bench_of(_changed(whole, change)))
        paired = mcnemar(first_is_right(answers, whole), first_is_right(less, whole))
        measured[name] = {"metrics": metrics_json(less, whole), "mcnemar": asdict(paired)}
    return measured


def _written_fields(context: ExperimentContext, pool: Dataset) -> dict[str, Any]:
    """The pool, enriched, without each of the fields a writer fills."""
    if lacking := context.models.lacking({"llm"}):
        return {name: {"not_run": lacking} for name in _WRITTEN}
    all_of_them = _answers(context.bench_of(pool, writer=context.models.writer))
    measured = {}
    for name in _WRITTEN:
        less = _answers(context.bench_of(pool, writer=Omitting(context.models.writer, name)))
        paired = mcnemar(first_is_right(all_of_them, pool), first_is_right(less, pool))
        measured[name] = {"metrics": metrics_json(less, pool), "mcnemar": asdict(paired)}
    return measured


def _answers(bench: Workbench) -> Answers:
    with bench:
        return ask(VARIANTS["hybrid"].build(bench), bench.dataset.queries)
