"""On how many cores the encoder's runs are, by what else runs."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mats.adapters.encoder import local as module
from mats.adapters.encoder.local import Sessions
from tests.fakes import AtOnce, FakeClock, Never


class FakeSession:
    """Records the threads of each run; `meanwhile` is called during a run."""

    def __init__(self, threads: int, runs: list[int]) -> None:
        self.threads, self.runs = threads, runs

    def run(self, names: None, inputs: dict[str, Any]) -> list[Any]:
        self.runs.append(self.threads)
        if meanwhile := inputs.pop("meanwhile", None):
            meanwhile()
        return [np.zeros(1)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(module.time, "monotonic", lambda: clock.ms / 1000)
    clock.ms = 1_000
    return clock


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> list[int]:
    runs: list[int] = []
    monkeypatch.setattr(module, "_session", lambda path, threads: FakeSession(threads, runs))
    monkeypatch.setattr(module, "cores", lambda: 4)
    monkeypatch.setattr(module, "ThreadPoolExecutor", lambda most, name: AtOnce())
    return runs


def test_runs_that_meet_have_one_core_each_until_none_have_met_for_a_while(runs, clock):
    sessions = Sessions(Path("model"))
    sessions.run({"meanwhile": lambda: sessions.run({}, many=False)}, many=False)
    sessions.run({}, many=False)
    clock.ms += 99
    sessions.run({}, many=False)
    clock.ms += 1
    sessions.run({}, many=False)
    assert runs == [2, 1, 1, 1, 2]


def test_each_of_many_has_one_core_from_the_first(runs):
    sessions = Sessions(Path("model"))
    sessions.run({}, many=True)
    sessions.run({"meanwhile": lambda: sessions.run({}, many=False)}, many=True)
    assert runs == [1, 1, 1]


def test_a_run_that_fails_is_over(runs, clock):
    def fail() -> None:
        raise RuntimeError("out of memory")

    sessions = Sessions(Path("model"))
    with pytest.raises(RuntimeError):
        sessions.run({"meanwhile": fail}, many=False)
    sessions.run({}, many=False)
    assert runs == [2, 2]


def test_one_core_is_all_there_is(runs, monkeypatch):
    monkeypatch.setattr(module, "cores", lambda: 1)
    Sessions(Path("model")).run({}, many=False)
    assert runs == [1]


def test_a_run_does_not_wait_for_the_session_that_is_made_for_the_next(runs, monkeypatch):
    monkeypatch.setattr(module, "ThreadPoolExecutor", lambda most, name: Never())
    sessions = Sessions(Path("model"))
    sessions.run({"meanwhile": lambda: sessions.run({}, many=False)}, many=False)
    assert runs == [2, 2]


def test_an_exit_waits_for_the_session_that_is_made_meanwhile(monkeypatch):
    made_by: list[threading.Thread] = []

    def make(path: Path, threads: int) -> FakeSession:
        made_by.append(threading.current_thread())
        return FakeSession(threads, [])

    monkeypatch.setattr(module, "_session", make)
    Sessions(Path("model")).run({}, many=True)
    assert [thread.daemon for thread in made_by] == [False, False]
