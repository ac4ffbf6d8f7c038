"""The pipeline over stores and models. Each part is built at first use, for short cold starts.

What only answers need is imported where it is built: enrichment starts without it.
"""

import logging
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from mats import ports
from mats.adapters.clock import SystemClock, fresh_id
from mats.adapters.threads import CallersThread, DaemonThreads, FirstComeGate
from mats.bootstrap.models import RERANKED, ConfiguredModels, budgets_of, load_calibration
from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityError, DependencyFailed, Fault, ModelRefused, NotPossible
from mats.domain.profile.profile import Profile
from mats.domain.search.blend import TRUST, Scoring
from mats.domain.search.query import Filter
from mats.domain.search.signals import PAPER_WEIGHTS
from mats.domain.search.verdict import VerdictThresholds
from mats.edge.observers import LogObserver, Observers
from mats.settings import Settings
from mats.usecases.learn import RecordFeedback, Teach
from mats.usecases.models import RecentVectors, observe_writer

if TYPE_CHECKING:
    from mats.edge.app import Application
    from mats.edge.changes import ChangeProcessor
    from mats.edge.feedback import FeedbackService
    from mats.usecases.backfill import Backfill
    from mats.usecases.discover import Discover
    from mats.usecases.drafts import ProfileMaker
    from mats.usecases.enrich import Enrich
    from mats.usecases.erase import Erase
    from mats.usecases.reconcile import Reconcile
    from mats.usecases.reindex import Reindex
    from mats.usecases.resend import SpreadChange
    from mats.usecases.stages import Stages


class Stores(Protocol):
    """The stores and the index of one system; None stands for one that there is no place for."""

    @property
    def registry(self) -> ports.Registry: ...
    @property
    def trust(self) -> ports.TrustBook: ...
    @property
    def profiles(self) -> ports.ProfileStore: ...
    @property
    def index(self) -> ports.SearchIndex: ...
    @property
    def memory(self) -> ports.Memory | None: ...  # The remembered requests
    @property
    def generations(self) -> ports.Generations: ...
    @property
    def audiences_of(self) -> Callable[[str], frozenset[str]] | None: ...  # By ARN; None: tokens carry them
    @property
    def receipts(self) -> ports.Receipts | None: ...  # Stores them in the background
    @property
    def early_receipts(self) -> ports.Receipts | None: ...  # Before answers are complete
    @property
    def outcomes(self) -> ports.Outcomes | None: ...  # None where feedback has a function of its own
    @property
    def spread(self) -> "SpreadChange | None": ...  # None: the store announces by itself

    def openers(self) -> Sequence[Callable[[], object]]:
        """Open connections to the stores that answers need."""

    def announce_rejections(self, rejected: Sequence[Profile]) -> None:
        """Announce them, if there is an event bus. Raises DependencyFailed: not all were announced."""

    def check(self) -> None:
        """Raises DependencyFailed: what was written last could not be stored, and still cannot be."""

    def close(self) -> None:
        """Release files and connections."""


S_co = TypeVar("S_co", bound=Stores, covariant=True)

LOGGER = logging.getLogger("mats")
_OPEN_S = 2.0  # Timeout of opening a connection in advance; Lambda allows 10 s for all that follows a restore
_THREADS = 256  # Threads start on demand, and an idle one is cheap
_ANSWERING = 192  # Answers that retrieve or wait to: some of the service's 256 threads are left to refuse more
_WITHIN_S = 2.0  # An answer that would wait longer to retrieve is refused: its caller has waited enough
_REMOTE_ENCODERS_PER_CORE = 16
"""Concurrent retrievals per core where most of a retrieval is waiting for a remote encoder; otherwise 1."""


@dataclass(frozen=True)
class System(Generic[S_co]):
    """The use cases, over these stores and models."""

    settings: Settings
    models: ConfiguredModels
    stores: S_co
    clock: ports.Clock = field(default_factory=SystemClock)
    waiting: Counter[str] = field(default_factory=Counter)
    """How often changes had to wait for a model, or were refused by one, by reason."""
    refusals: set[str] = field(default_factory=set)  # The messages of models that refuse every request
    observers: list[ports.Observer] = field(default_factory=list)
    """Those beside the log; may grow and shrink at any time."""

    @cached_property
    def discover(self) -> "Discover":
        from mats.bootstrap.policies import policies_of  # noqa: PLC0415
        from mats.usecases.discover import Discover  # noqa: PLC0415
        from mats.usecases.rerank import Rerank  # noqa: PLC0415

        index, encoder = self.stores.index, self.models.encoder
        calibration = load_calibration(index.name, encoder.name if encoder else "none")
        memory = self.stores.memory if self.settings.learning == "on" and encoder else None
        recent = RecentVectors(encoder) if encoder else None
        return Discover(
            index=index,
            encoder=recent,
            language=encoder if isinstance(encoder, ports.LanguageBound) else None,
            k=self.settings.k,
            rerank=Rerank(reranker=self.models.reranker),
            policies=policies_of(
                unrated=TRUST.unrated_trust,
                encode=recent.encode_query if recent else None,
                memory=memory,
            ),
            stages=stages_of(self.settings, self.clock),
            scoring=Scoring(scale=calibration.scale, weights=PAPER_WEIGHTS, trust=TRUST),
            thresholds=VerdictThresholds(
                reranked=RERANKED,
                hybrid=calibration.thresholds,
                lexical=load_calibration(index.name, "none").thresholds,
            ),
            ids=fresh_id,
            calibration=calibration.source,
        )

    @cached_property
    def application(self) -> "Application":
        from mats.edge.app import Application  # noqa: PLC0415
        from mats.usecases.digest import Digest  # noqa: PLC0415
        from mats.usecases.look_up import LookUp  # noqa: PLC0415
        from mats.usecases.receipts import LeaveReceipt  # noqa: PLC0415

        stores, texts = self.stores, self.settings.log_queries == "text"
        receipts = (
            LeaveReceipt(later=stores.receipts, early=stores.early_receipts, texts=texts) if stores.receipts else None
        )
        return Application(
            self.discover,
            LookUp(stores.index),
            audiences_of=stores.audiences_of,
            observe=self.observe,
            receipts=receipts,
            feedback=self.feedback,
            digest=Digest(stores.index, self.clock),
            check_stores=stores.check,
        )

    @cached_property
    def feedback(self) -> "FeedbackService | None":
        """The recorder of feedback; None where answers leave no receipts, or where it has a function of its own."""
        receipts, outcomes = self.stores.receipts, self.stores.outcomes
        if receipts is None or outcomes is None:
            return None
        from mats.edge.feedback import FeedbackService  # noqa: PLC0415 - not for discovery in AWS

        days, texts = self.settings.receipt_days, self.settings.log_queries == "text"
        record = RecordFeedback(receipts=receipts, outcomes=outcomes, days=days, texts=texts)
        return FeedbackService(record, self.observe)

    @property
    def teach(self) -> Teach:
        """The use case that keeps operators' lessons. Raises NotPossible: requests cannot be compared or kept here."""
        outcomes, encoder = self.stores.outcomes, self.models.encoder
        if outcomes is None or encoder is None or self.settings.learning != "on":
            needs = "an encoder, MATS_LEARNING=on and, in AWS, MATS_OUTCOMES_TABLE"
            raise NotPossible([Fault("", f"nothing can be taught here: it needs {needs}")])
        return Teach(
            registry=self.stores.registry, outcomes=outcomes, profiles=self.stores.profiles, encoder=encoder,
            clock=self.clock,
        )  # fmt: skip

    @cached_property
    def profile_maker(self) -> "ProfileMaker":
        from mats.usecases.drafts import ProfileMaker  # noqa: PLC0415 - not for discovery

        return ProfileMaker(
            encoder=self.models.encoder,
            writer=observe_writer(self.models.writer, self.observe, self.clock),
            sparse_only=self.settings.enrich == "sparse",
            review_new=self.settings.review_new,
        )

    @cached_property
    def enrich(self) -> "Enrich":
        from mats.usecases.enrich import Enrich  # noqa: PLC0415 - not for discovery

        return Enrich(
            registry=self.stores.registry,
            trust=self.stores.trust,
            profiles=self.stores.profiles,
            index=self.stores.index,
            maker=self.profile_maker,
            writer_threads=DaemonThreads(self.settings.writer_calls, "writer"),
            on_wait=self._note_wait,
            on_reject=self.stores.announce_rejections,
            on_refuse=lambda refused: self.observe(ports.ModelsRefused(refused=refused)),
        )

    @cached_property
    def change_processor(self) -> "ChangeProcessor":
        from mats.edge.changes import ChangeProcessor  # noqa: PLC0415 - not for discovery

        return ChangeProcessor(self.enrich, self.models.spending, self.observe, spread=self.stores.spread)

    @cached_property
    def reconcile(self) -> "Reconcile":
        from mats.usecases.reconcile import Reconcile  # noqa: PLC0415 - not for discovery

        stores = self.stores
        return Reconcile(
            enrich=self.enrich,
            registry=stores.registry,
            profiles=stores.profiles,
            index=stores.index,
            clock=self.clock,
            ids=fresh_id,
        )

    @cached_property
    def reindex(self) -> "Reindex":
        from mats.usecases.reindex import Reindex  # noqa: PLC0415 - not for discovery

        return Reindex(profiles=self.stores.profiles, generations=self.stores.generations)

    @cached_property
    def backfill(self) -> "Backfill":
        from mats.usecases.backfill import Backfill  # noqa: PLC0415 - not for discovery

        return Backfill(enrich=self.enrich, clock=self.clock, ids=fresh_id)

    def load_index(self) -> None:
        """Load an index in files, in Lambda's init phase; a failure is left to the first answer."""
        if self.settings.index_bucket:
            try:
                self.stores.index.page(Filter(), after=None, limit=1)
            except DependencyFailed as error:
                LOGGER.warning("the index was not loaded in advance: %s", error)

    def open_connections(self) -> None:
        """Connect to all that an answer needs; the first answer finds it done.

        Its own failures are logged only: the answer will name what it lacks.
        """
        work = [*self.stores.openers(), *self.models.openers()]
        threads = DaemonThreads(len(work) or 1, "open")
        for call in [threads.submit(each) for each in work]:
            try:
                call.result(timeout=_OPEN_S)
            except (CapabilityError, TimeoutError) as error:
                LOGGER.warning("a connection was not opened in advance: %s", error or f"no answer in {_OPEN_S} s")

    def erase(self, settle: Callable[[Id], None]) -> "Erase":
        """Erase capabilities; `settle` takes a removed one down the offline path."""
        from mats.usecases.erase import Erase  # noqa: PLC0415 - not for discovery

        stores = self.stores
        return Erase(
            registry=stores.registry,
            trust=stores.trust,
            profiles=stores.profiles,
            outcomes=stores.outcomes,
            clock=self.clock,
            ids=fresh_id,
            settle=settle,
        )

    def close(self) -> None:
        """Stop the threads of the online path and close the stores."""
        if "discover" in self.__dict__:
            self.discover.stages.executor.shutdown(wait=False, cancel_futures=True)
        self.stores.close()

    @property
    def why_waiting(self) -> str:
        """The most frequent reason why changes had to wait for a model; empty if none had to."""
        return next((reason for reason, _ in self.waiting.most_common(1)), "")

    def _note_wait(self, id: Id, error: DependencyFailed) -> None:
        """Log each reason once."""
        if isinstance(error, ModelRefused):
            self.refusals.add(str(error))
        self.waiting[str(error)] += 1
        if self.waiting[str(error)] == 1:
            LOGGER.warning("change waits for a model id=%s: %s", id, error)

    @cached_property
    def observe(self) -> ports.Observer:
        return observers_of(self.settings, self.observers)


AnySystem: TypeAlias = System[Stores]


def observers_of(settings: Settings, further: Sequence[ports.Observer] = ()) -> ports.Observer:
    """The log, and any others."""
    return Observers([LogObserver(settings.log_queries == "text", requests=settings.log_format == "json")], further)


def stages_of(settings: Settings, clock: ports.Clock) -> "Stages":
    """Threads and a budget for stages that wait for a network; others run in the thread of the answer."""
    from mats.usecases.stages import Stages  # noqa: PLC0415

    models = DaemonThreads(_THREADS, "model")
    cores = os.cpu_count() or 1
    at_once = cores * (_REMOTE_ENCODERS_PER_CORE if settings.has_bedrock_encoder else 1)
    return Stages(
        clock=clock,
        executor=ThreadPoolExecutor(_THREADS, "stage") if settings.in_aws else CallersThread(),
        models={
            "encode": models if settings.in_aws or settings.has_bedrock_encoder else CallersThread(),
            "rerank": models,
        },
        budgets=budgets_of(settings),
        concurrent=settings.in_aws,
        gate=FirstComeGate(at_once, longest=max(cores, _ANSWERING - at_once), within_s=_WITHIN_S),
    )
