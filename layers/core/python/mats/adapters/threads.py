"""A thread pool for calls that may never return."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")
_Work = Callable[[], None]


class DaemonThreads(Executor):
    """A pool of daemon threads: unlike the standard pool, it does not join them when the interpreter exits."""

    def __init__(self, most: int, name: str) -> None:
        """At most `most` threads, started on demand."""
        self._most, self._name = most, name
        self._waiting: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0
        self._lock = threading.Lock()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # raised by `result()`
                future.set_exception(error)
            else:
                future.set_result(result)

        self._waiting.put(work)
        with self._lock:
            if not self._idle.acquire(blocking=False) and self._started < self._most:
                self._started += 1
                threading.Thread(target=self._run, name=f"{self._name}-{self._started}", daemon=True).start()
        return future

    def _run(self) -> None:
        while True:
            self._waiting.get()()
            self._idle.release()
