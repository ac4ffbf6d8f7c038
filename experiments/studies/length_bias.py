"""Length bias: what raw entries lose when half of a registry is enriched, by template, and what enriched ones gain."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from experiments.studies.context import ExperimentContext
from experiments.studies.slices import dense_slice
from experiments.studies.template_writer import LENGTHS, Length, write
from mats.adapters.sqlite.index import SqliteIndex
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.profile.index_fields import FIELD_WEIGHTS, embedded_text
from mats.domain.profile.profile import Enrichment, Profile, profile_of
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import SEED, estimate, per_query
from mats.evaluation.systems.base import Answers, ask
from mats.evaluation.systems.models import QueryCache
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.score import dataset_json, estimate_json
from mats.ports import Encoder, SearchIndex, Stored
from mats.usecases.discover import Discover

DATASET, SIZE = "tools", 2_000
WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "as shipped": {},
    "every field 1": {"examples": 1.0},
    "examples not at all": {"examples": 0.0},
    "examples and keywords .5": {"examples": 0.5, "keywords": 0.5},
    "all that is written .5": {"summary": 0.5, "action": 0.5, "keywords": 0.5, "examples": 0.5},
}
"""The changed weights of each row."""
_NEIGHBOURS = 4
_PLACES = 15
_MATCH = ("match@1", "match@15")

Write = Callable[[Registration], Enrichment]


@dataclass(frozen=True, slots=True)
class Arm:
    """How the enriched half is registered, and how it is described from its full registration."""

    write: Write
    register: Callable[[Registration], Registration] = lambda registration: registration


def length_bias(context: ExperimentContext) -> dict[str, Any]:
    """Each half of a registry enriched while the other is raw, at several lengths and weights of the fields."""
    dataset = dense_slice(context.dataset(DATASET), SIZE)
    if lacking := context.models.lacking({"encoder"}):
        return {**dataset_json(dataset), "arms": {"not_run": lacking}}
    with context.bench_of(dataset) as bench:
        discover = bench.discover
        index, encoder = discover.retrieve.index, discover.retrieve.encoder
        if not isinstance(index, SqliteIndex) or encoder is None:
            raise TypeError(f"the fields of {index.name} cannot be weighted")
        retrieve = replace(discover.retrieve, encoder=QueryCache(encoder))
        systems = {
            label: replace(discover, retrieve=replace(retrieve, index=index.weighing({**FIELD_WEIGHTS, **changed})))
            for label, changed in WEIGHTS.items()
        }
        measured = {}
        for name, arm in arms_of(dataset, encoder).items():
            context.log(f"{DATASET}: half described, {name}")
            measured[name] = measure(dataset, arm, index, encoder, systems)
    return {**dataset_json(dataset), "arms": measured}


def arms_of(dataset: Dataset, encoder: Encoder) -> dict[str, Arm]:
    """Descriptions of three lengths, with examples that steal; and of capabilities that registered only a name."""
    near = _nearest(dataset.registrations, encoder)
    stealing = {name: Arm(partial(_stealing, length, near)) for name, length in LENGTHS.items()}
    return {**stealing, "bare names": Arm(partial(write, length=LENGTHS["medium"]), _bare)}


def _stealing(length: Length, near: Mapping[Id, Sequence[Registration]], registration: Registration) -> Enrichment:
    return write(registration, length, near[registration.id])


def _bare(registration: Registration) -> Registration:
    return Registration(namespace=registration.namespace, name=registration.name, kind=registration.kind)


def _nearest(registrations: Sequence[Registration], encoder: Encoder) -> dict[Id, list[Registration]]:
    """The nearest neighbours of every capability by the cosine of their raw texts, nearest first."""
    raw = [embedded_text(profile_of(registration, origin="")) for registration in registrations]
    vectors = np.array(encoder.encode_documents(raw), dtype=np.float32)
    near = {}
    for row, registration in enumerate(registrations):
        cosines = vectors @ vectors[row]
        cosines[row] = -1
        near[registration.id] = [registrations[i] for i in np.argsort(-cosines, kind="stable")[:_NEIGHBOURS]]
    return near


def measure(
    dataset: Dataset, arm: Arm, index: SearchIndex, encoder: Encoder, systems: Mapping[str, Discover]
) -> dict[str, Any]:
    """Answers of each system when one half is enriched, compared with when it is raw, over both halves.

    The index, which holds the raw entries of the data set, is left as it was.
    """
    filled, known = _Filled(index, encoder, max(rev for _, rev, _ in index.revisions())), next(iter(systems.values()))
    by_system: dict[str, list[_HalfAnswers]] = {label: [] for label in systems}
    for enriched, raw in _halves(dataset):
        whole = [registration for registration in dataset.registrations if registration.id in enriched]
        filled.put(_profile(arm.register(registration)) for registration in whole)
        before = _answers(known, dataset)  # no raw entry of these sets has words in a field whose weight is changed
        filled.put(_profile(arm.register(registration), arm.write(registration)) for registration in whole)
        for label, system in systems.items():
            by_system[label].append(_HalfAnswers(enriched, raw, before, _answers(system, dataset)))
        filled.put(map(_profile, whole))
    return {
        label: {
            "raw": _entries_json(dataset, [(half.raw, half) for half in answers]),
            "enriched": _entries_json(dataset, [(half.enriched, half) for half in answers]),
        }
        for label, answers in by_system.items()
    }


@dataclass(frozen=True, slots=True)
class _HalfAnswers:
    enriched: frozenset[Id]
    raw: frozenset[Id]
    before: Answers
    after: Answers


@dataclass(slots=True)
class _Filled:
    """An index with its encoder, and the highest revision in it, as an index ignores lower ones."""

    index: SearchIndex
    encoder: Encoder
    rev: int

    def put(self, profiles: Iterable[Profile]) -> None:
        """Replace entries; each keeps its time of registration, which decides between near-duplicates."""
        self.rev += 1
        replacing = list(profiles)
        known = self.index.fetch([profile.id for profile in replacing])
        update = {"rev": self.rev, "encoder": self.encoder.name}
        entries = [
            profile.model_copy(update={**update, "first_registered": known[profile.id].first_registered})
            for profile in replacing
        ]
        vectors = self.encoder.encode_documents([embedded_text(profile) for profile in entries])
        self.index.put([Stored(profile, vector) for profile, vector in zip(entries, vectors, strict=True)])


def _profile(registration: Registration, enrichment: Enrichment | None = None) -> Profile:
    """The profile without grounding: all that is written comes from registrations."""
    return profile_of(registration, origin="", enrichment=enrichment)


def _halves(dataset: Dataset) -> Iterator[tuple[frozenset[Id], frozenset[Id]]]:
    """Two seeded halves in both orders."""
    ids = sorted(registration.id for registration in dataset.registrations)
    random.Random(SEED).shuffle(ids)
    halves = frozenset(ids[::2]), frozenset(ids[1::2])
    yield halves
    yield halves[::-1]


def _answers(system: Discover, dataset: Dataset) -> Answers:
    return ask(shortlist_system(system), dataset.queries)


def _entries_json(dataset: Dataset, parts: Sequence[tuple[frozenset[Id], _HalfAnswers]]) -> dict[str, Any]:
    """Match of the queries that these entries alone answer, and the places of an entry on all others."""
    asked = [[query for query in dataset.queries if query.relevant <= entries] for entries, _ in parts]
    result: dict[str, Any] = {"queries": sum(map(len, asked))}
    values = [
        (_match(half.before, queries), _match(half.after, queries))
        for queries, (_, half) in zip(asked, parts, strict=True)
    ]
    for name in _MATCH:
        before = np.concatenate([one[name] for one, _ in values])
        after = np.concatenate([other[name] for _, other in values])
        result[name] = {"before": estimate_json(estimate(before)), "change": estimate_json(estimate(after - before))}
    size = sum(len(entries) for entries, _ in parts)
    result["places"] = {
        "before": round(sum(_places(dataset, half.before, entries) for entries, half in parts) / size, 3),
        "after": round(sum(_places(dataset, half.after, entries) for entries, half in parts) / size, 3),
    }
    return result


def _match(answers: Answers, queries: Sequence[JudgedQuery]) -> dict[str, Any]:
    return per_query({query.id: answers[query.id].ranked for query in queries}, queries)


def _places(dataset: Dataset, answers: Answers, entries: frozenset[Id]) -> int:
    """How many of the first 15 places entries hold on queries that they do not answer."""
    ranked = ((query, answers[query.id].ranked[:_PLACES]) for query in dataset.queries)
    return sum(id in entries and id not in query.relevant for query, ids in ranked for id in ids)
