"""Large products of one search on two cores."""

import functools
import os
import threading
from collections.abc import Callable

from mats.adapters.threads import DaemonThreads, cores


def in_halves(work: Callable[[int, int], None], size: int, *, least: int) -> None:
    """Call `work(start, end)` so that 0 to `size` is covered: all at once, or in two halves on two threads.

    Two if there are two cores, the size is at least this, and no other search has the second thread.
    """
    helper = _helper(os.getpid())
    if size < max(least, 2) or cores() < 2 or not helper.free.acquire(blocking=False):
        work(0, size)
        return
    try:
        second = helper.threads.submit(work, size // 2, size)
        try:
            work(0, size // 2)
        finally:
            second.result()
    finally:
        helper.free.release()


class _Helper:
    """The second thread, and whether a search has it."""

    def __init__(self) -> None:
        self.threads = DaemonThreads(1, "mats-search")
        self.free = threading.Lock()


@functools.cache
def _helper(process: int) -> _Helper:
    """That of a process, which a child made by a fork does not have."""
    return _Helper()
