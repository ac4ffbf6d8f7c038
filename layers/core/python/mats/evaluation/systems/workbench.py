"""What systems under test stand on: a registry filled through the production path, and models that are remembered."""

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Self

from mats.bootstrap.local import Local
from mats.domain.capability import Id, Kind
from mats.domain.errors import DependencyFailed
from mats.domain.profile import Cause, Profile
from mats.domain.query import Filter, Query
from mats.domain.registration import Registration
from mats.domain.shortlist import Shortlist
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import Run
from mats.evaluation.systems.base import LONGEST_QUERY, Answer, Progress, System, unheard
from mats.evaluation.systems.models import Models
from mats.ports import Change, Encoder, Hit, Reranker, SearchIndex, Stored, Vector, Writer
from mats.settings import Settings
from mats.usecases.circuit_breaker import CircuitBreaker
from mats.usecases.discover import Discover
from mats.usecases.enrich import Outcome
from mats.usecases.rerank import Rerank
from mats.usecases.stages import Budgets

_BATCH = 64
NO_TIMEOUTS = Budgets(encode_ms=3_600_000, retrieve_ms=60_000, rerank_ms=3_600_000)
"""An evaluation would rather wait than measure a busy machine; clients of models give up before that."""


class DisabledBreaker(CircuitBreaker):
    """Never opens: a model is asked for each query, whatever became of the one before."""

    def allows_call(self, now_ms: float) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, slots=True)
class WithoutWords:
    """An index whose lexical side finds nothing; whether it still measures what others found is up to the variant."""

    index: SearchIndex
    measures: bool = False

    @property
    def name(self) -> str:
        """The index's own."""
        return self.index.name

    def put(self, entries: Sequence[Stored]) -> None:
        """The index's own."""
        self.index.put(entries)

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """Nothing."""
        return []

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """The index's own."""
        return self.index.neural(vector, admitted, depth=depth)

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        """The index's own, or nothing: then the signal is absent."""
        return self.index.bm25_of(terms, ids) if self.measures else {}

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        """The index's own."""
        return self.index.cosine_of(vector, ids)

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        """The index's own."""
        return self.index.fetch(ids)

    def page(self, admitted: Filter, *, after: Id | None, limit: int) -> Sequence[Id]:
        """As the index."""
        return self.index.page(admitted, after=after, limit=limit)

    def revisions(self) -> Iterator[tuple[Id, int, bool]]:
        """The index's own."""
        return self.index.revisions()

    def purge(self, ids: Collection[Id]) -> None:
        """The index's own."""
        self.index.purge(ids)


@contextmanager
def registry_of(
    registrations: Sequence[Registration],
    settings: Settings,
    *,
    encoder: Encoder | None,
    writer: Writer | None = None,
    trust: Mapping[Id, int] = MappingProxyType({}),
    progress: Progress = unheard,
) -> Iterator[Local]:
    """A registry in a folder that is gone afterwards, filled through the production path.

    Raises:
        DependencyFailed: a model failed; what is measured without its work would pass for what is measured with it.
    """
    with tempfile.TemporaryDirectory(prefix="mats-evaluate-") as folder:
        local = Local(replace(settings, home=Path(folder)), encoder=encoder, writer=writer)
        with closing(local):
            _fill(local, registrations, trust, progress)
            yield local


def _fill(local: Local, registrations: Sequence[Registration], trust: Mapping[Id, int], progress: Progress) -> None:
    for start in range(0, len(registrations), _BATCH):
        batch = registrations[start : start + _BATCH]
        local.registry.put(batch)
        for r in batch:
            if r.id in trust:
                local.trust.put(r.id, trust[r.id])
        changes = [Change(r.id, Cause(event_id="evaluation", time=local.clock.now())) for r in batch]
        if Outcome.DEGRADED in local.enrich(changes).values():
            raise DependencyFailed(f"the registry cannot be filled: {local.why_waiting}")
        progress(len(batch))


@dataclass(kw_only=True)
class Workbench:
    """One data set, its registry, and the models there are. The registry is filled when a variant first asks for it.

    It holds what owners wrote; with a `writer`, what that made of it.
    """

    dataset: Dataset
    settings: Settings
    models: Models
    writer: Writer | None = None
    indexed: Progress = unheard
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def discover(self) -> Discover:
        """The production object over this registry, without a reranker and in no hurry."""
        registered = registry_of(
            self.dataset.registrations,
            self.models.offline,
            encoder=self.models.encoder,
            writer=self.writer,
            trust=self.dataset.trust,
            progress=self.indexed,
        )
        local = self._open.enter_context(registered)
        shipped = local.discover
        return replace(
            shipped,
            retrieve=replace(shipped.retrieve, breaker=DisabledBreaker()),
            rerank=Rerank(reranker=None, shuffle=shipped.rerank.shuffle, breaker=DisabledBreaker()),
            stages=replace(shipped.stages, budgets=NO_TIMEOUTS),
        )


def asking(discover: Discover, *, kinds: Sequence[Kind] = ()) -> System:
    """A system that answers with the whole shortlist."""

    def answer(query: JudgedQuery) -> Answer:
        shortlist = discover(Query(query=query.text[:LONGEST_QUERY], kinds=tuple(kinds)))
        ranked = [result.candidate.profile.id for result in shortlist.ranked]
        return Answer(
            ranked=ranked,
            retrieved=ranked,
            usage=shortlist.trace.usage,
            took_ms=shortlist.trace.took_ms,
            failed=lost(shortlist, discover.retrieve.encoder, discover.rerank.reranker),
        )

    return answer


def lost(shortlist: Shortlist, encoder: Encoder | None, reranker: Reranker | None) -> str:
    """Why an answer has to do without a model that there is; empty if it need not."""
    there = {"neural": encoder, "llm": reranker}
    missed = any(model is not None and part in shortlist.degraded for part, model in there.items())
    return "; ".join(shortlist.trace.faults) or "a model is missing" if missed else ""


def run_discover(
    discover: Discover, queries: Sequence[JudgedQuery], *, kinds: Sequence[Kind] = (), progress: Progress = unheard
) -> Run:
    """What a system answers to every query: its whole shortlist, in order."""
    system = asking(discover, kinds=kinds)
    run: dict[str, Sequence[Id]] = {}
    for query in queries:
        run[query.id] = system(query).ranked
        progress(1)
    return run
