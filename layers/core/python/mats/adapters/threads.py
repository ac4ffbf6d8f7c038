"""A pool for calls that may never return, a limit in order of arrival, and how work in the background yields."""

import math
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from mats.domain.errors import Overloaded

T = TypeVar("T")
_Work = Callable[[], None]


_SMOOTHING = 0.1  # The share of the newest turn in the mean of turns
_LONGEST_RETRY_S = 10  # A client that is told more gives up
_NICE = 5  # Of 19: others get three quarters of a core that they want, too


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def yield_to_others() -> None:
    """Let this thread run where no other thread or process needs the core. On Linux; elsewhere nothing changes."""
    if sys.platform == "linux":  # elsewhere priorities are of processes
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(own + _NICE, 19))


class FirstComeGate:
    """A context that at most so many threads are in, in the order of their arrival.

    A semaphore lets newcomers pass those who wait, so that some wait several times as long as others.
    """

    def __init__(
        self,
        most: int,
        *,
        longest: int = sys.maxsize,
        within_s: float = math.inf,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Refuses newcomers with Overloaded at `longest` in the queue, or if their turn would come after `within_s`.

        The wait is estimated from the time that the last turns took. As many as are let in at a time may wait in any
        case, so that turns go on being measured.
        """
        self._free, self._most, self._longest, self._within_s, self._now = most, most, longest, within_s, now
        self._turn_s = 0.0  # The mean time between turns while others wait
        self._last_turn = now()  # Or when the first of those who wait came
        self._turns: deque[threading.Lock] = deque()
        """Of those who wait; released by the one who leaves, whose place is taken without becoming free."""
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        return len(self._turns)

    def __enter__(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            waiting, wait_s = len(self._turns), (len(self._turns) + 1) * self._turn_s
            if waiting >= self._longest or (waiting >= self._most and wait_s > self._within_s):
                raise Overloaded(waiting, retry_after_s=max(1, min(math.ceil(wait_s), _LONGEST_RETRY_S)))
            if not self._turns:
                self._last_turn = self._now()
            turn = threading.Lock()
            turn.acquire()
            self._turns.append(turn)
        try:
            turn.acquire()
        except BaseException:  # an interrupt
            with self._lock:
                if turn in self._turns:
                    self._turns.remove(turn)
                else:
                    self._pass_on()
            raise

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give a place to the one who has waited longest."""
        if self._turns:
            now = self._now()
            self._turn_s += _SMOOTHING * (now - self._last_turn - self._turn_s)
            self._last_turn = now
            self._turns.popleft().release()
        else:
            self._free += 1


class CallersThread(Executor):
    """Runs work at once, in the thread that submits it: for work that takes less time than waking another thread."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        future: Future[T] = Future()
        _complete(future, lambda: fn(*args, **kwargs))
        return future


def _complete(future: "Future[T]", work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as error:  # raised by `result()`
        future.set_exception(error)
    else:
        future.set_result(result)


class DaemonThreads(Executor):
    """A pool of daemon threads: unlike the standard pool, it does not join them when the interpreter exits."""

    def __init__(self, most: int, name: str, on_start: Callable[[], None] = lambda: None) -> None:
        """At most `most` threads, started on demand; each begins with `on_start`."""
        self._most, self._name, self._on_start = most, name, on_start
        self._waiting: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0
        self._lock = threading.Lock()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        future: Future[T] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                _complete(future, lambda: fn(*args, **kwargs))

        self._waiting.put(work)
        with self._lock:
            if not self._idle.acquire(blocking=False) and self._started < self._most:
                self._started += 1
                threading.Thread(target=self._run, name=f"{self._name}-{self._started}", daemon=True).start()
        return future

    def _run(self) -> None:
        self._on_start()
        while True:
            self._waiting.get()()
            self._idle.release()
