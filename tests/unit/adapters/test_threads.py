"""The pool of daemon threads, and the gate that admits threads in the order of their arrival."""

import os
import subprocess
import sys
import threading
from concurrent.futures import as_completed

import pytest

from mats.adapters.threads import CallersThread, DaemonThreads, FirstComeGate, yield_to_others
from mats.domain.errors import Overloaded
from mats.edge.http import error_response


def test_results_and_errors_reach_the_caller():
    pool = DaemonThreads(2, "t")
    assert [future.result(timeout=5) for future in [pool.submit(pow, n, 2) for n in range(50)]] == [
        n * n for n in range(50)
    ]
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result(timeout=5)


def test_threads_are_limited_and_started_on_demand():
    pool, running, most = DaemonThreads(3, "t"), set(), []
    everybody_is_here, lock = threading.Barrier(3, timeout=5), threading.Lock()

    def work():
        with lock:
            running.add(threading.get_ident())
            most.append(len(running))
        everybody_is_here.wait()

    for future in as_completed([pool.submit(work) for _ in range(9)], timeout=10):
        future.result()
    assert max(most) == 3


def test_work_cancelled_while_waiting_is_not_run():
    pool, go, ran = DaemonThreads(1, "t"), threading.Event(), []
    first, second = pool.submit(go.wait, 5), pool.submit(ran.append, 1)
    assert second.cancel()
    go.set()
    first.result(timeout=5)
    pool.submit(int).result(timeout=5)
    assert ran == []


def test_each_thread_begins_with_its_start():
    begun = []
    pool = DaemonThreads(1, "t", on_start=lambda: begun.append(threading.current_thread().name))
    assert [pool.submit(int).result(timeout=5) for _ in range(3)] == [0, 0, 0]
    assert begun == ["t-1"]


@pytest.mark.skipif(sys.platform != "linux", reason="priorities are of processes there")
def test_a_thread_that_yields_leaves_the_others_as_they_are():
    before = os.getpriority(os.PRIO_PROCESS, 0)
    pool = DaemonThreads(1, "t", on_start=yield_to_others)
    yielding = pool.submit(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())).result(timeout=5)
    assert yielding > before or yielding == before == 19
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_a_process_ends_while_a_call_hangs():
    program = (
        "from mats.adapters.threads import DaemonThreads; import threading; "
        "DaemonThreads(1, 't').submit(threading.Event().wait)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=20, check=False).returncode == 0


class Interrupted(BaseException):
    """As of the keyboard."""


class InterruptedLock:
    """A turn whose wait is interrupted, before or after it came."""

    def __init__(self, gate: FirstComeGate, *, first_comes: bool) -> None:
        self.gate, self.first_comes, self.asked, self.came = gate, first_comes, 0, False

    def acquire(self) -> None:
        self.asked += 1
        if self.asked == 2:
            if self.first_comes:
                self.gate.__exit__()
            raise Interrupted

    def release(self) -> None:
        self.came = True


class Crowd:
    """Callers who come one after another to a gate that is full, and leave it when they are told."""

    def __init__(self, most: int = 1, **bounds: float) -> None:
        self.time = 0.0
        self.gate = FirstComeGate(most, now=lambda: self.time, **bounds)
        self.admitted: list[int] = []
        self.refused: list[int] = []
        self.told_s: set[int] = set()
        self.threads: list[threading.Thread] = []
        for _ in range(most):
            self.gate.__enter__()

    def come(self, count: int) -> int:
        """How many of so many who come now wait."""
        before = self.gate.waiting
        for _ in range(count):
            number, waiting = len(self.threads), self.gate.waiting
            self.threads.append(threading.Thread(target=self._enter, args=[number], daemon=True))
            self.threads[-1].start()
            while self.threads[-1].is_alive() and self.gate.waiting == waiting:
                pass
        return self.gate.waiting - before

    def leave(self, count: int, *, each_after: float = 0) -> None:
        """Let so many leave, each of whom is followed by the one who has waited longest."""
        for _ in range(count):
            self.time += each_after
            entered = len(self.admitted)
            self.gate.__exit__()
            while len(self.admitted) == entered:
                pass

    def _enter(self, number: int) -> None:
        try:
            self.gate.__enter__()
        except Overloaded as error:
            self.refused.append(number)
            self.told_s.add(error.retry_after_s)
        else:
            self.admitted.append(number)


@pytest.mark.parametrize("most", [1, 2])
def test_a_gate_admits_so_many_at_a_time_in_the_order_of_arrival(most: int):
    crowd = Crowd(most)
    assert crowd.come(8) == 8
    crowd.leave(3)
    assert crowd.come(2) == 2
    crowd.leave(7)
    assert (crowd.admitted, crowd.refused) == ([*range(10)], [])


@pytest.mark.parametrize(("turn_s", "waiting"), [(0.25, 8), (0.5, 4), (5, 1)])
def test_whoever_would_wait_too_long_is_refused_and_the_others_keep_their_order(turn_s: float, waiting: int):
    crowd = Crowd(within_s=2)
    assert crowd.come(40) == 40  # no turn was measured
    crowd.leave(40, each_after=turn_s)
    crowd.time += 3_600  # nobody waits: no turn
    assert crowd.come(20) == waiting
    crowd.leave(waiting)
    assert crowd.admitted == [*range(40 + waiting)]
    assert crowd.refused == [*range(40 + waiting, 60)]
    assert crowd.told_s == {3 if turn_s < 1 else 10}


def test_more_may_wait_when_turns_are_short_again():
    crowd = Crowd(within_s=2)
    crowd.come(40)
    crowd.leave(40, each_after=5)
    for _ in range(40):
        assert crowd.come(1) == 1
        crowd.leave(1, each_after=0.01)
    assert crowd.come(10) == 10


def test_who_comes_to_a_full_queue_is_refused_at_once_with_a_time_to_come_again():
    gate = FirstComeGate(1, longest=0)
    with gate, pytest.raises(Overloaded, match="try again") as refused:
        gate.__enter__()
    answer = error_response(refused.value, internal_details=False)
    assert (answer.status, answer.headers["Retry-After"], "try again" in answer.body) == (429, "1", True)
    with gate:
        assert gate.waiting == 0


def test_an_error_inside_leaves_the_place_to_the_next():
    gate = FirstComeGate(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), gate:
            raise ZeroDivisionError


@pytest.mark.parametrize("first_comes", [False, True])
def test_whoever_is_interrupted_while_waiting_takes_no_place(monkeypatch, first_comes):
    gate = FirstComeGate(1)
    gate.__enter__()
    turn = InterruptedLock(gate, first_comes=first_comes)
    with monkeypatch.context() as patched:
        patched.setattr("mats.adapters.threads.threading.Lock", lambda: turn)
        with pytest.raises(Interrupted):
            gate.__enter__()
    assert turn.came is first_comes
    if not first_comes:
        gate.__exit__()
    with gate:
        assert gate.waiting == 0


def test_work_in_the_callers_thread_is_done_when_it_is_submitted():
    at_once = CallersThread()
    assert at_once.submit(threading.get_ident).result(timeout=0) == threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        at_once.submit(lambda: 1 // 0).result(timeout=0)
