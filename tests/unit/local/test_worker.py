"""The in-process queue: nothing it is given is lost, and nothing can stop it for good."""

import os
import threading
from types import SimpleNamespace

import pytest

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.queue import SqliteQueue
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry
from mats.bootstrap.local import local_system
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import Assigned, pattern_id
from mats.domain.profile.profile import ChangeResult, Enrichment
from mats.edge.changes import ChangeProcessor
from mats.local import worker
from mats.local.cli.indexing import Early, index
from mats.local.worker import drain
from mats.ports import Written
from mats.settings import Settings
from mats.usecases.drafts import ProfileMaker
from tests.builders import a_registration
from tests.fakes import CountingIds, FakeClock, FakeEncoder, ScriptedWriter


@pytest.fixture
def events(tmp_path):
    database = Database(tmp_path / "mats.db")
    registry = SqliteRegistry(database, Announcer(FakeClock(), CountingIds()))
    registry.put([a_registration(name=f"tool-{n}") for n in range(100)])
    yield SqliteQueue(database, f"{os.getpid()}:here")
    database.close()


def over(events, enrich):
    return SimpleNamespace(
        models=SimpleNamespace(encoder=None, writer=None),
        stores=SimpleNamespace(queue=events),
        change_processor=ChangeProcessor(lambda changes, deadline, run: enrich(changes, deadline), dict),
        profile_maker=ProfileMaker(encoder=None, writer=None),
    )


def indexed(changes, deadline):
    return {change.id: ChangeResult.INDEXED for change in changes}


def test_failed_events_stay_queued(events):
    def down(changes, deadline):
        raise DependencyFailed("down")

    drain(over(events, down))
    assert events.depth().waiting == 100


def test_a_command_completes_what_it_wrote_while_it_writes_more(events):
    done = threading.Event()

    def watched(changes, deadline):
        done.set()
        return indexed(changes, deadline)

    with Early(lambda: over(events, watched)).open() as early:
        early.begin()
        early.begin()
        assert done.wait(10)
    assert early.total == 100
    assert index(over(events, watched))[0] == events.depth().waiting == 0


def test_a_command_waits_for_what_a_running_service_has_taken(events):
    service = SqliteQueue(events.database, f"{os.getppid()}:service")
    taken = service.take(1)
    finishing = threading.Timer(0.1, lambda: service.settle(taken, frozenset()))
    finishing.start()
    assert (index(over(events, indexed))[0], events.depth().waiting) == (99, 0)
    finishing.join()


def test_unsettled_batch_is_processed_again(events, monkeypatch):
    monkeypatch.setattr(worker, "_RETRY_S", 0)
    monkeypatch.setattr(worker, "BATCH", 64)
    settled, done = SqliteQueue.settle, threading.Event()

    def settle(self, taken, failed, reason=""):
        if not handled[1:]:
            raise DependencyFailed("held by another process")
        settled(self, taken, failed, reason)
        if not self.depth().waiting:
            done.set()

    def enrich(changes, deadline):
        handled.append(len(changes))
        return indexed(changes, deadline)

    handled: list[int] = []
    monkeypatch.setattr(SqliteQueue, "settle", settle)
    running = worker.EnrichmentWorker(over(events, enrich))
    running.start()
    assert done.wait(20)
    running.stop()
    assert handled == [64, 64, 36]


def test_raw_profiles_are_findable_while_the_writer_works(tmp_path):
    names, asked, go = [f"tool-{n}" for n in range(40)], threading.Event(), threading.Event()

    def slow(registration):
        asked.set()
        go.wait(20)
        return Written(enrichment=Enrichment(summary="Works.", keywords=("work",)))

    local = local_system(Settings(home=tmp_path, encoder="none"), writer=ScriptedWriter(slow))
    local.stores.registry.put([a_registration(name=name) for name in names])
    pumping = threading.Thread(target=drain, args=(local,))
    pumping.start()
    assert asked.wait(20)
    found = local.stores.index.fetch([a_registration(name=name).id for name in names])
    assert len(found) == 40
    assert not any(profile.enriched for profile in found.values())
    go.set()
    pumping.join(30)
    assert all(profile.enriched for profile in local.stores.index.fetch(list(found)).values())
    assert local.stores.queue.depth() == (0, 0)
    local.close()


class CountingEncoder(FakeEncoder):
    """Notes how many capabilities were findable at each call."""

    def __init__(self, count) -> None:
        super().__init__()
        self.count, self.findable = count, []

    def encode_documents(self, texts):
        self.findable.append(self.count())
        return super().encode_documents(texts)


@pytest.fixture
def hundred(tmp_path):
    """A system with an encoder, and a hundred registrations that wait."""
    encoder = CountingEncoder(lambda: sum(1 for _ in local.stores.index.ids()))
    local = local_system(Settings(home=tmp_path), encoder=encoder)
    local.stores.registry.put([a_registration(name=f"tool-{n}") for n in range(100)])
    yield local, encoder
    local.close()


def test_everything_is_findable_by_words_before_the_first_vector(hundred, monkeypatch):
    monkeypatch.setattr(worker, "MANY", 100)
    monkeypatch.setattr(worker, "BATCH", 64)
    local, encoder = hundred
    completed, findable = [], []
    drain(local, completed.append, on_findable=findable.append)
    assert (sum(findable), sum(completed)) == (100, 100)
    assert encoder.findable == [100, 100]
    assert local.stores.profiles.counts()["progress"]["with a vector"] == 100
    assert local.stores.queue.depth() == (0, 0)


def test_a_few_events_are_completed_in_one_revision(hundred):
    local, encoder = hundred
    drain(local)
    stored = local.stores.profiles.get(list(local.stores.registry.ids()))
    assert [one.profile.rev for one in stored.values()] == [1] * 100
    assert encoder.findable[0] == 0


def test_events_that_need_no_model_are_completed_by_the_first_run(hundred, monkeypatch):
    monkeypatch.setattr(worker, "MANY", 100)
    local, encoder = hundred
    drain(local)
    encoder.findable.clear()
    local.stores.trust.put(pattern_id(a_registration().namespace), Assigned(trust=70))
    completed = []
    drain(local, completed.append)
    assert (completed, encoder.findable) == ([100], [])


def test_a_batch_that_was_begun_early_is_completed_before_it_could_be_taken_again(monkeypatch):
    began, goes_on, completed = threading.Event(), threading.Event(), []

    def slow(local, on_batch, *, stopped):
        began.set()
        goes_on.wait()
        completed.append(True)

    monkeypatch.setattr(worker, "drain", slow)
    monkeypatch.setattr(worker, "_STOP_S", 0)
    with Early(lambda: None).open() as early:
        early.begin()
        began.wait()
        threading.Timer(0.05, goes_on.set).start()
    assert completed
