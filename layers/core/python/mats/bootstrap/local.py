"""Everything on one machine, over one folder."""

import os
from functools import cached_property
from typing import Any

from mats.adapters.clock import fresh_id
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.events import SqliteEvents
from mats.adapters.sqlite.exposure import SqliteExposure
from mats.adapters.sqlite.listing import SqliteListing
from mats.adapters.sqlite.profiles import SqliteProfiles
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry, SqliteTrust
from mats.bootstrap.system import System
from mats.ports import CandidateIndex, Encoder, Generations, Reranker, Writer
from mats.settings import Settings, SettingsInvalid

DATABASE = "mats.db"


class Local(System):
    """The whole system over one folder."""

    def __init__(
        self,
        settings: Settings,
        *,
        encoder: Encoder | None = None,
        writer: Writer | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """Open the registry of these settings, or make it; the arguments are those of any system.

        Raises:
            StorageUnusable: the message says what to do.
            SettingsInvalid: the settings name a system in AWS.
        """
        if settings.in_aws:
            raise SettingsInvalid(
                "this works on a local registry only: unset MATS_INDEX_ENDPOINT (reconcile, reindex and backfill work "
                "in AWS; owners and operators write to the tables themselves)"
            )
        super().__init__(settings, encoder=encoder, writer=writer, reranker=reranker)
        self.database = Database(settings.home / DATABASE)
        watch = self.database.watch()
        self.listing = SqliteListing(self.database, watch)
        self.exposure = SqliteExposure(watch, self.clock)
        self.events = SqliteEvents(self.database, f"{os.getpid()}:{fresh_id()}")

    @property
    def _announce(self) -> Announcer:
        return Announcer(self.clock, fresh_id)

    @cached_property
    def registry(self) -> SqliteRegistry:
        """What owners wrote."""
        return SqliteRegistry(self.database, self._announce)

    @cached_property
    def trust(self) -> SqliteTrust:
        """What operators think of it."""
        return SqliteTrust(self.database, self._announce)

    @cached_property
    def profiles(self) -> SqliteProfiles:
        """What enrichment made of it."""
        return SqliteProfiles(self.database)

    @cached_property
    def index(self) -> CandidateIndex:
        """What searches it."""
        from mats.adapters.sqlite.index import SqliteIndex  # noqa: PLC0415 - numpy, for commands that search

        return SqliteIndex(self.database, encoder=self.encoder.name if self.encoder else "")

    @cached_property
    def generations(self) -> Generations:
        """One index, made anew in place."""
        from mats.adapters.sqlite.generations import SqliteGenerations  # noqa: PLC0415 - numpy, as above

        return SqliteGenerations(self.database, self.index.name)

    def counts(self) -> dict[str, Any]:
        """What is registered, findable and waiting."""
        depth = self.events.depth()
        return {
            "home": str(self.settings.home),
            "registered": sum(1 for _ in self.registry.ids()),
            **self.profiles.counts(),
            "changes": depth._asdict(),
            "vectors": self.profiles.vectors() or "none",
            "given_up": [f"{id}: {reason}" for id, reason in self.events.dead_letters()],
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
        if "discover" in self.__dict__:
            self.discover.stages.executor.shutdown(wait=False, cancel_futures=True)
        self.database.close()
