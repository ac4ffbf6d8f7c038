"""Wiring: the only production module that imports adapters."""

import json
import logging
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any

from mats.adapters.clock import SystemClock, fresh_id
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.events import SqliteEvents
from mats.adapters.sqlite.profiles import SqliteProfiles
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry, SqliteTrust
from mats.adapters.threads import DaemonThreads
from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.prompt import Prompt
from mats.domain.ranking import PAPER_WEIGHTS, Scale, Thresholds
from mats.domain.usage import Prices, Usage
from mats.ports import Encoder, Reranker, SearchIndex, Writer
from mats.settings import TITAN, Settings
from mats.usecases.discover import Budgets, Discover, Retrieval
from mats.usecases.enrich import Enrich
from mats.usecases.look_up import LookUp
from mats.usecases.reconcile import Reconcile

if TYPE_CHECKING:
    from mats.adapters.bedrock.models import Bedrock

DATABASE = "mats.db"
LOGGER = logging.getLogger("mats")
_STAGE_THREADS = 256
"""Threads are made as they are needed; a waiting one costs next to nothing."""
_BUDGETS = Budgets()
_WAITING_PER_CORE = 16
"""Retrievals at once where most of a retrieval is waiting for an encoder elsewhere."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the discovery function serves."""

    discover: Discover
    look_up: LookUp
    log_queries: bool = True


@dataclass(frozen=True, slots=True)
class Calibration:
    """What makes raw scores absolute, for one index and encoder."""

    scale: Scale
    thresholds: Thresholds


JUDGED = Thresholds(match=0.7, weak=0.4)
"""For relevance as a reranker judges it, which is absolute by itself; not fitted to any one model."""


class Local:
    """The whole system over one folder; each part is made when it is first asked for."""

    def __init__(
        self,
        settings: Settings,
        *,
        encoder: Encoder | None = None,
        writer: Writer | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """Open the registry of these settings, or make it.

        Args:
            settings: Where and how.
            encoder: Used instead of the one the settings name.
            writer: Used instead of the one the settings name, if they name one.
            reranker: Used instead of the one the settings name, if they name one.

        Raises:
            StorageUnusable: the message says what to do.
        """
        self.settings = settings
        self.without_encoder = ""
        """Why there is no encoder; empty if there is one or nobody has asked."""
        self._given_encoder, self._given_writer, self._given_reranker = encoder, writer, reranker
        self.waiting: Counter[str] = Counter()
        """Why changes had to wait for a model, and how often, since this was made."""
        self.clock = SystemClock()
        self.database = Database(settings.home / DATABASE)
        announce = Announcer(self.clock, fresh_id)
        self.registry = SqliteRegistry(self.database, announce)
        self.trust = SqliteTrust(self.database, announce)
        self.profiles = SqliteProfiles(self.database)
        self.events = SqliteEvents(self.database, f"{os.getpid()}:{fresh_id()}")

    @cached_property
    def index(self) -> SearchIndex:
        """The search index."""
        from mats.adapters.sqlite.index import SqliteIndex  # noqa: PLC0415 - numpy, for commands that search

        return SqliteIndex(self.database, encoder=self.encoder.name if self.encoder else "")

    @cached_property
    def encoder(self) -> Encoder | None:
        """The encoder; none if it is switched off or missing, which `without_encoder` explains."""
        if self._given_encoder:
            return self._given_encoder
        try:
            found = encoder(self.settings, self.bedrock)
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
        return bedrock(self.settings)

    @cached_property
    def writer(self) -> Writer | None:
        """The enrichment LLM, if there is one."""
        model = self.settings.writer_model
        if self._given_writer or self.bedrock is None or model == "none":
            return self._given_writer
        return self.bedrock.writer(model, prompt("enrich"))

    @cached_property
    def reranker(self) -> Reranker | None:
        """The discovery LLM, if there is one."""
        model = self.settings.rerank_model
        if self._given_reranker or self.bedrock is None or model == "none":
            return self._given_reranker
        return self.bedrock.reranker(model, prompt("rerank"))

    def spent(self) -> dict[str, Usage]:
        """What this process has spent, by model."""
        return self.bedrock.meter.totals() if self.bedrock else {}

    @cached_property
    def _readers(self) -> DaemonThreads:
        return DaemonThreads(self.settings.writer_calls, "writer")

    @cached_property
    def enrich(self) -> Enrich:
        """The offline path."""
        return Enrich(
            registry=self.registry,
            trust=self.trust,
            profiles=self.profiles,
            index=self.index,
            encoder=self.encoder,
            writer=self.writer,
            readers=self._readers,
            waits=self._waits,
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
    def discovery(self) -> Discovery:
        """The online path."""
        calibration = calibrated(self.index.name, self.encoder.name if self.encoder else "none")
        discover = Discover(
            index=self.index,
            encoder=self.encoder,
            reranker=self.reranker,
            scale=calibration.scale,
            weights=PAPER_WEIGHTS,
            thresholds=calibration.thresholds,
            lexical_thresholds=calibrated(self.index.name, "none").thresholds,
            judged_thresholds=JUDGED,
            clock=self.clock,
            ids=fresh_id,
            executor=ThreadPoolExecutor(_STAGE_THREADS, thread_name_prefix="stage"),
            models=DaemonThreads(_STAGE_THREADS, "model"),
            retrieval=Retrieval(k=self.settings.k),
            budgets=_BUDGETS,
            gate=BoundedSemaphore((os.cpu_count() or 1) * (_WAITING_PER_CORE if self._encodes_far_away else 1)),
            shuffle=self.settings.candidate_order == "shuffled",
        )
        return Discovery(discover, LookUp(self.index), log_queries=self.settings.log_queries == "text")

    def counts(self) -> dict[str, Any]:
        """What is registered, findable and waiting."""
        depth = self.events.depth()
        return {
            "home": str(self.settings.home),
            "registered": sum(1 for _ in self.registry.ids()),
            **self.profiles.counts(),
            "changes": depth._asdict(),
            "vectors": self.profiles.vectors() or "none",
            "given_up": [f"{id}: {reason}" for id, reason in self.events.dead()],
            "bytes": sum(file.stat().st_size for file in self.database.path.parent.glob(f"{DATABASE}*")),
            "encoder": self.encoder.name if self.encoder else f"none: {self.without_encoder}",
        }

    def unencoded(self) -> int:
        """How many findable capabilities have no vector of this encoder: the neural side cannot find them."""
        counts = self.profiles.vectors()
        mine = counts.get(self.encoder.name, 0) if self.encoder else 0
        return self.profiles.counts()["progress"]["indexed"] - mine

    def close(self) -> None:
        """Let go of the file and the threads."""
        if "discovery" in self.__dict__:
            self.discovery.discover.executor.shutdown(wait=False, cancel_futures=True)
        self.database.close()

    @cached_property
    def reconcile(self) -> Reconcile:
        """The repair."""
        return Reconcile(
            enrich=self.enrich,
            registry=self.registry,
            profiles=self.profiles,
            index=self.index,
            clock=self.clock,
            ids=fresh_id,
        )


def discovery(settings: Settings) -> Discovery:
    """What the discovery function serves."""
    return Local(settings).discovery


def enrichment(settings: Settings) -> Enrich:
    """What the enrichment function runs."""
    return Local(settings).enrich


def bedrock(settings: Settings) -> "Bedrock | None":
    """The models on Bedrock, if the settings turn them on.

    Raises:
        DependencyFailed: boto3 is not installed.
    """
    if not settings.bedrock:
        return None
    try:
        from mats.adapters.bedrock.models import Bedrock  # noqa: PLC0415 - boto3, for those who use Bedrock
    except ModuleNotFoundError as error:
        raise DependencyFailed(
            f"Bedrock needs {error.name}, which is not installed: pip install 'mats[aws]'"
        ) from error
    prices = Prices.parse(json.loads(_resource("prices.json")))
    return Bedrock(
        prices,
        region=settings.region,
        rerank_ms=_BUDGETS.rerank_ms,
        encode_ms=_BUDGETS.encode_ms,
        concurrency=settings.writer_calls,
    )


def prompt(name: str) -> Prompt:
    """A prompt of `prompts/`."""
    return Prompt.parse(_resource(f"prompts/{name}.md"))


def _resource(path: str) -> str:
    return resources.files("mats").joinpath(path).read_text("utf-8")


def encoder(settings: Settings, models: "Bedrock | None" = None) -> Encoder | None:
    """The encoder these settings name; none if they say `none`.

    Raises:
        DependencyFailed: it is not installed, cannot be fetched, or AWS's own settings cannot be used.
    """
    if settings.encoder == "none":
        return None
    if settings.encoder.startswith(TITAN):
        models = models or bedrock(settings)
        return models.encoder(settings.encoder) if models else None
    from mats.adapters.encoder.local import LocalEncoder  # noqa: PLC0415 - onnxruntime, for commands that encode

    return LocalEncoder.load(
        settings.encoder,
        cache=settings.cache or user_cache(),
        precision="fp32" if settings.encoder_precision == "fp32" else "int8",
        query_prefix=settings.query_prefix,
    )


def user_cache() -> Path:
    """The folder for what can be made again."""
    return Path.home() / ".cache" / "mats"


def calibrated(index: str, encoder: str) -> Calibration:
    """The constants for an index and an encoder, by the start of `index/encoder`.

    A pair that was never measured has the first one's, which the log says, until `make calibrate` has run with it.
    """
    table = json.loads(_resource("calibration.json"))
    wanted = f"{index}/{encoder}"
    known = next((key for key in table if wanted.startswith(key)), None)
    if known is None:
        known = next(iter(table))
        LOGGER.warning("no calibration for %s; using that of %s", wanted, known)
    row = table[known]
    return Calibration(Scale(**row["scale"]), Thresholds(**row["thresholds"]))
