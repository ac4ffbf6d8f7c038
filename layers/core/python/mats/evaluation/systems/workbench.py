"""Temporary registries for systems under test, filled through the production path."""

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Self

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.profile import Cause, ChangeResult
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.systems.base import Progress, no_progress
from mats.evaluation.systems.models import Models
from mats.ports import Change, Encoder, Writer
from mats.settings import Settings
from mats.usecases.discover import Discover
from mats.usecases.stages import Budgets

_BATCH = 64
_NO_TIMEOUTS = Budgets(encode_ms=3_600_000, retrieve_ms=60_000, rerank_ms=3_600_000)
"""Effectively no stage timeout; model clients have their own."""


def without_timeouts(discover: Discover) -> Discover:
    """The pipeline without reranker, stage timeouts and circuit breakers."""
    stages = replace(discover.stages, budgets=_NO_TIMEOUTS, breakers={})
    return replace(discover, rerank=replace(discover.rerank, reranker=None), stages=stages)


def without_policies(discover: Discover, names: Collection[str]) -> Discover:
    """The pipeline without the policies of these names."""
    return replace(discover, policies=[policy for policy in discover.policies if policy.name not in names])


@contextmanager
def registry_of(
    registrations: Sequence[Registration],
    settings: Settings,
    *,
    encoder: Encoder | None,
    writer: Writer | None = None,
    trust: Mapping[Id, int] = MappingProxyType({}),
    progress: Progress = no_progress,
) -> Iterator[LocalSystem]:
    """A registry in a temporary folder, filled through the production path.

    Raises DependencyFailed: a model failed; a registry without its results would measure another system.
    """
    with tempfile.TemporaryDirectory(prefix="mats-evaluate-") as folder:
        local = local_system(replace(settings, home=Path(folder)), encoder=encoder, writer=writer)
        with closing(local):
            now = local.clock.now()  # one time for all: the order of a data set says nothing about age
            for start in range(0, len(registrations), _BATCH):
                batch = registrations[start : start + _BATCH]
                local.stores.registry.put(batch)
                for r in batch:
                    if r.id in trust:
                        local.stores.trust.put(r.id, Assigned(trust=trust[r.id]))
                index_changes(local, [r.id for r in batch], now)
                progress(len(batch))
            yield local


def index_changes(local: LocalSystem, ids: Sequence[Id], time: str | None = None) -> None:
    """Take capabilities, changed at this time or now, down the offline path.

    Raises DependencyFailed: a model failed.
    """
    changes = [Change(id, Cause(event_id="evaluation", time=time or local.clock.now())) for id in ids]
    if {ChangeResult.DEGRADED, ChangeResult.REFUSED} & set(local.enrich(changes).values()):
        raise DependencyFailed(f"the registry cannot be filled: {local.why_waiting}")


@dataclass(kw_only=True)
class Workbench:
    """One data set with its models, and its registry, which is filled at first use.

    Profiles are raw; with a `writer` they are enriched.
    """

    dataset: Dataset
    models: Models
    writer: Writer | None = None
    indexed: Progress = no_progress
    without: Collection[str] = ()  # The policies that its pipeline lacks
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def discover(self) -> Discover:
        registry = registry_of(
            self.dataset.registrations,
            self.models.offline,
            encoder=self.models.encoder,
            writer=self.writer,
            trust=self.dataset.trust,
            progress=self.indexed,
        )
        return without_policies(without_timeouts(self._open.enter_context(registry).discover), self.without)
