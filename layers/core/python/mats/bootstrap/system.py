"""What every way to run mats is wired of; which stores and index it has, its kinds say."""

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

from mats.adapters.clock import SystemClock, fresh_id
from mats.adapters.threads import DaemonThreads
from mats.bootstrap import models
from mats.bootstrap.calibration import RERANKED, calibrated
from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile import Profile
from mats.domain.ranking import PAPER_WEIGHTS, VerdictThresholds
from mats.domain.usage import Usage
from mats.edge.app import Application, ignore_metrics
from mats.ports import (
    Encoder,
    Generations,
    Metrics,
    ProfileStore,
    Registry,
    Reranker,
    SearchIndex,
    TrustBook,
    Writer,
)
from mats.settings import TITAN, Settings
from mats.usecases.discover import Discover
from mats.usecases.look_up import LookUp
from mats.usecases.rerank import Rerank
from mats.usecases.retrieve import Retrieve
from mats.usecases.stages import Stages

if TYPE_CHECKING:
    from mats.adapters.bedrock.factory import Bedrock
    from mats.edge.changes import ChangeProcessor
    from mats.usecases.backfill import Backfill
    from mats.usecases.enrich import Enrich
    from mats.usecases.reconcile import Reconcile
    from mats.usecases.reindex import Reindex

LOGGER = logging.getLogger("mats")
_STAGE_THREADS = 256
"""Threads are made as they are needed; a waiting one costs next to nothing."""
_WAITING_PER_CORE = 16
"""Retrievals at once where most of a retrieval is waiting for an encoder elsewhere."""


class System:
    """The pipeline over some stores and an index; each part is made when it is first asked for."""

    def __init__(
        self,
        settings: Settings,
        *,
        encoder: Encoder | None = None,
        writer: Writer | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """Wire what these settings say.

        Args:
            settings: Where and how.
            encoder: Used instead of the one the settings name.
            writer: Used instead of the one the settings name, if they name one.
            reranker: Used instead of the one the settings name, if they name one.
        """
        self.settings = settings
        self.without_encoder = ""
        """Why there is no encoder; empty if there is one or nobody has asked."""
        self._given_encoder, self._given_writer, self._given_reranker = encoder, writer, reranker
        self.waiting: Counter[str] = Counter()
        """Why changes had to wait for a model, and how often, since this was made."""
        self.clock = SystemClock()

    @cached_property
    def registry(self) -> Registry:
        """What owners wrote."""
        raise NotImplementedError

    @cached_property
    def trust(self) -> TrustBook:
        """What operators think of it."""
        raise NotImplementedError

    @cached_property
    def profiles(self) -> ProfileStore:
        """What enrichment made of it."""
        raise NotImplementedError

    @cached_property
    def index(self) -> SearchIndex:
        """What searches it."""
        raise NotImplementedError

    @cached_property
    def generations(self) -> Generations:
        """One index after the other."""
        raise NotImplementedError

    @cached_property
    def encoder(self) -> Encoder | None:
        """The encoder; none if it is switched off or missing, which `without_encoder` explains."""
        if self._given_encoder:
            return self._given_encoder
        try:
            found = models.encoder(self.settings, self.bedrock)
        except DependencyFailed as error:
            self.without_encoder = str(error)
            return None
        self.without_encoder = "" if found else "MATS_ENCODER is none"
        return found

    @cached_property
    def bedrock(self) -> "Bedrock | None":
        """The models on Bedrock, if the settings turn them on.

        Raises:
            NotPermitted: AWS's own settings cannot be used.
        """
        return models.bedrock(self.settings)

    @cached_property
    def writer(self) -> Writer | None:
        """The enrichment LLM, if there is one."""
        model = self.settings.writer_model
        if self._given_writer or self.bedrock is None or model == "none":
            return self._given_writer
        return self.bedrock.writer(model, models.prompt("enrich"))

    @cached_property
    def reranker(self) -> Reranker | None:
        """The discovery LLM, if there is one."""
        model = self.settings.rerank_model
        if self._given_reranker or self.bedrock is None or model == "none":
            return self._given_reranker
        return self.bedrock.reranker(model, models.prompt("rerank"))

    def spent(self) -> dict[str, Usage]:
        """What this process has spent, by model."""
        return self.bedrock.meter.totals() if self.bedrock else {}

    @cached_property
    def _readers(self) -> DaemonThreads:
        return DaemonThreads(self.settings.writer_calls, "writer")

    @cached_property
    def enrich(self) -> "Enrich":
        """The offline path."""
        from mats.usecases.enrich import Enrich  # noqa: PLC0415 - not for discovery, whose start counts

        return Enrich(
            registry=self.registry,
            trust=self.trust,
            profiles=self.profiles,
            index=self.index,
            encoder=self.encoder,
            writer=self.writer,
            readers=self._readers,
            waits=self._waits,
            rejects=self._rejects,
        )

    def _waits(self, id: Id, error: DependencyFailed) -> None:
        """Say once for each reason why changes wait."""
        self.waiting[str(error)] += 1
        if self.waiting[str(error)] == 1:
            LOGGER.warning("%s and perhaps others wait for a model: %s", id, error)

    @property
    def why_waiting(self) -> str:
        """The commonest reason why changes had to wait for a model; empty if none had to."""
        return next((reason for reason, _ in self.waiting.most_common(1)), "")

    @property
    def _encodes_far_away(self) -> bool:
        return self.settings.encoder.startswith(TITAN)

    @cached_property
    def discover(self) -> Discover:
        """The online path."""
        calibration = calibrated(self.index.name, self.encoder.name if self.encoder else "none")
        return Discover(
            retrieve=Retrieve(index=self.index, encoder=self.encoder, k=self.settings.k),
            rerank=Rerank(reranker=self.reranker, shuffle=self.settings.candidate_order == "shuffled"),
            stages=Stages(
                clock=self.clock,
                executor=ThreadPoolExecutor(_STAGE_THREADS, thread_name_prefix="stage"),
                models=DaemonThreads(_STAGE_THREADS, "model"),
                budgets=models.BUDGETS,
            ),
            weights=PAPER_WEIGHTS,
            scale=calibration.scale,
            thresholds=VerdictThresholds(
                reranked=RERANKED,
                hybrid=calibration.thresholds,
                lexical=calibrated(self.index.name, "none").thresholds,
            ),
            ids=fresh_id,
            gate=BoundedSemaphore((os.cpu_count() or 1) * (_WAITING_PER_CORE if self._encodes_far_away else 1)),
        )

    @cached_property
    def application(self) -> Application:
        """The online path as callers use it."""
        return Application(
            self.discover,
            LookUp(self.index),
            log_queries=self.settings.log_queries == "text",
            audiences_of=self._callers,
            metrics=self._metrics("discovery"),
        )

    @cached_property
    def change_processor(self) -> "ChangeProcessor":
        """The offline path as the function runs it."""
        from mats.edge.changes import ChangeProcessor  # noqa: PLC0415 - not for discovery, whose start counts

        return ChangeProcessor(self.enrich, self.spent, self._metrics("enrichment"))

    @cached_property
    def _callers(self) -> Callable[[str], frozenset[str]] | None:
        """None where callers bring their audiences with them."""
        return None

    def _rejects(self, rejected: Sequence[Profile]) -> None:
        """Nobody has to hear of it: the profile says why."""

    def _metrics(self, service: str) -> Metrics:
        if not self.settings.metrics:
            return ignore_metrics
        from mats.adapters.cloudwatch import CloudWatchMetrics  # noqa: PLC0415 - Powertools, for the functions in AWS

        return CloudWatchMetrics(self.settings.metrics, service)

    @cached_property
    def reconcile(self) -> "Reconcile":
        """The repair."""
        from mats.usecases.reconcile import Reconcile  # noqa: PLC0415 - not for discovery, whose start counts

        return Reconcile(
            enrich=self.enrich,
            registry=self.registry,
            profiles=self.profiles,
            index=self.index,
            clock=self.clock,
            ids=fresh_id,
        )

    @cached_property
    def reindex(self) -> "Reindex":
        """A new index in place of the old one."""
        from mats.usecases.reindex import Reindex  # noqa: PLC0415 - not for discovery, whose start counts

        return Reindex(profiles=self.profiles, generations=self.generations)

    def backfill(self, per_minute: int) -> "Backfill":
        """What another prompt or model has made stale, at most so many a minute; 0 does not hold back."""
        from mats.usecases.backfill import Backfill  # noqa: PLC0415 - not for discovery, whose start counts

        return Backfill(enrich=self.enrich, clock=self.clock, ids=fresh_id, pause=time.sleep, per_minute=per_minute)
