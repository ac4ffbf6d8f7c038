"""Counts of the providers that the latest answers showed."""

import pytest

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.receipts import SqliteExposure
from mats.domain.errors import DependencyFailed
from mats.domain.shortlist.rank import Shortlist
from tests.builders import a_profile, a_shortlist
from tests.fakes import FakeClock

AT = "2026-01-01T00:00:00+00:00"


def answer(*providers: str, shown: int | None = None) -> Shortlist:
    """Of these providers; one that ends with a check mark is verified."""
    given = [(provider.rstrip("✓"), provider.endswith("✓")) for provider in providers]
    profiles = [
        a_profile(name=f"n{n}", provider=name, verified=name if verified else "")
        for n, (name, verified) in enumerate(given)
    ]
    return a_shortlist(*profiles, shown=shown)


@pytest.fixture
def exposure_log(database: Database) -> SqliteExposure:
    """A log of the latest five answers."""
    return SqliteExposure(database.watch(), FakeClock(), latest=5)


def test_an_answer_counts_the_shown_results_of_each_provider(exposure_log: SqliteExposure):
    assert exposure_log.exposure() == (0, None, None, [])
    exposure_log.record(answer("Acme", "Bank", "Acme", "", shown=3))
    exposure_log.record(answer("Bank", "Acme", shown=1))
    exposure_log.record(answer())
    assert exposure_log.exposure() == (
        3, AT, AT,
        [("Acme", 1, 1, 2, 3, False), ("Bank", 2, 1, 2, 2, False), ("", 0, 0, 0, 1, False)],
    )  # fmt: skip


def test_a_claimed_provider_is_counted_apart_from_the_verified_one(exposure_log: SqliteExposure):
    exposure_log.record(answer("Acme", "Acme✓", "Acme✓", shown=2))
    exposure_log.record(answer("Acme✓", '["Acme"]'))
    assert exposure_log.exposure().providers == [
        ("Acme", 2, 1, 2, 3, True), ("Acme", 1, 1, 1, 1, False), ('["Acme"]', 1, 0, 1, 1, False),
    ]  # fmt: skip


def test_only_the_latest_answers_are_stored(exposure_log: SqliteExposure):
    for n in range(12):
        exposure_log.record(answer(f"p{n:02}"))
        if n % 4 == 0:
            exposure_log.flush()
    count, *_, providers = exposure_log.exposure()
    assert (count, [one.provider for one in providers]) == (5, ["p07", "p08", "p09", "p10", "p11"])


def test_answers_survive_a_restart_once_flushed(database: Database):
    log = SqliteExposure(database.watch(), FakeClock())
    log.record(answer("Acme"))
    log.flush()
    log.record(answer("Lost"))
    assert SqliteExposure(database.watch(), FakeClock()).exposure().answers == 1


def test_answers_that_could_not_be_stored_wait_for_the_next_flush(database: Database, monkeypatch):
    monkeypatch.setattr("mats.adapters.sqlite.database._BUSY_MS", 1)
    log = SqliteExposure(database.watch(), FakeClock())
    log.record(answer("Acme"))
    with database.writing(), pytest.raises(DependencyFailed):
        log.flush()
    log.record(answer("Bank"))
    assert [one.provider for one in log.exposure().providers] == ["Acme", "Bank"]


def test_recording_answers_does_not_look_like_a_change_of_the_registry(database: Database):
    watch = database.watch()
    log, before = SqliteExposure(watch, FakeClock()), watch.version()
    log.record(answer("Acme"))
    log.flush()
    assert watch.version() == before
    with database.writing() as connection:
        connection.execute("INSERT INTO trust (id, assigned) VALUES ('a/b', '{}')")
    assert watch.version() != before
