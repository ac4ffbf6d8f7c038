"""The pool of daemon threads, and the gate that admits threads in the order of their arrival."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

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


def test_a_gate_admits_so_many_at_a_time_and_everybody_once():
    gate, inside, most, lock = FirstComeGate(2), [], [], threading.Lock()
    both_are_here = threading.Barrier(2, timeout=5)

    def enter(number: int) -> int:
        with gate:
            with lock:
                inside.append(number)
                most.append(len(inside))
            both_are_here.wait()
            with lock:
                inside.remove(number)
        return number

    with ThreadPoolExecutor(10) as threads:
        assert sorted(threads.map(enter, range(10))) == list(range(10))
    assert max(most) == 2


def test_a_gate_admits_in_the_order_of_arrival_and_nobody_passes():
    gate, admitted = FirstComeGate(1), []

    def enter(number: int) -> None:
        with gate:
            admitted.append(number)

    with gate:
        threads = [threading.Thread(target=enter, args=[number]) for number in range(8)]
        for number, thread in enumerate(threads, start=1):
            thread.start()
            while gate.waiting < number:
                assert thread.is_alive()
    with gate:  # a newcomer
        assert admitted == list(range(8))
    for thread in threads:
        thread.join(5)


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
