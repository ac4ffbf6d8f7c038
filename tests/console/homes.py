"""Homes of the local service, filled in this process: quicker than by commands, and with a writer of our own."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from mats.bootstrap import models
from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed
from mats.local.worker import drain
from mats.settings import Settings
from tests.console.hostile import hostile_items, hostile_writing, rejected_item
from tests.fakes import ScriptedWriter
from tests.integration.conftest import Mats

_BATCH = 1_000
REJECTED = Id("org.evil.endpoint/endpoint-0")


def encoder_at_hand() -> str:
    """MATS_ENCODER on this machine: the usual one, or none where its weights are not installed."""
    settings = Settings()
    try:
        return settings.encoder if models.load_encoder(settings) else "none"
    except DependencyFailed:
        return "none"


@contextmanager
def opened(mats: Mats, writer: ScriptedWriter | None = None) -> Iterator[LocalSystem]:
    """The registry in its home, for filling it before a service starts over it."""
    settings = Settings(home=mats.home, encoder=mats.encoder)
    with closing(local_system(settings, encoder=models.load_encoder(settings), writer=writer)) as local:
        yield local


def fill(local: LocalSystem, registrations: Sequence[Registration]) -> None:
    """Register them and make them findable, through the production path."""
    for start in range(0, len(registrations), _BATCH):
        local.stores.registry.put(registrations[start : start + _BATCH])
    drain(local)
    assert local.stores.queue.depth() == (0, 0)


def hostile(mats: Mats) -> None:
    """Fill its home with all hostile items, enriched in the same spirit; the latest revision of one is rejected."""
    with opened(mats, ScriptedWriter(hostile_writing)) as local:
        fill(local, [Registration.parse(item) for item in hostile_items()])
        spoil(local, REJECTED)
        drain(local)


def spoil(local: LocalSystem, id: Id) -> None:
    """Put an item there that no command of ours would take."""
    with local.stores.database.writing() as connection:
        connection.execute("UPDATE registry SET item = ? WHERE id = ?", (json.dumps(rejected_item(id)), id))
        local.stores.registry.announce(connection, "Registry", "MODIFY", id)
