"""The pool of daemon threads."""

import os
import subprocess
import sys
import threading
from concurrent.futures import as_completed

import pytest

from mats.adapters.threads import DaemonThreads, yield_to_others


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
    assert pool.submit(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())).result(timeout=5) > before
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_a_process_ends_while_a_call_hangs():
    program = (
        "from mats.adapters.threads import DaemonThreads; import threading; "
        "DaemonThreads(1, 't').submit(threading.Event().wait)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=20, check=False).returncode == 0
