"""The end of a run that is stopped from outside, such as a Lambda invocation."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from mats.domain.errors import OutOfTime

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time left. A step starts only if its longest duration fits; what has no limit of its own gets one here."""

    left_ms: Callable[[], float]
    """Milliseconds until the run is stopped; infinite if it is not."""

    def allows(self, seconds: float) -> bool:
        """Whether a step that takes this long would end in time."""
        return self.left_ms() >= 1000 * seconds

    def wait_s(self, reserve_s: float) -> float | None:
        """How long to wait so that `reserve_s` is left; None: without limit."""
        left_s = self.left_ms() / 1000 - reserve_s
        return None if math.isinf(left_s) else max(0.0, left_s)

    def call(self, work: Callable[[], T], *, reserve_s: float) -> T:
        """The result of a call, which is abandoned when only `reserve_s` is left.

        Raises:
            OutOfTime: it was abandoned. Its thread goes on, and nobody takes its result.
            Exception: any exception of the call.
        """
        wait_s = self.wait_s(reserve_s)
        if wait_s is None:
            return work()
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # raised by `result()`
                future.set_exception(error)

        threading.Thread(target=run, name="until-deadline", daemon=True).start()
        try:
            return future.result(timeout=wait_s)
        except TimeoutError as error:
            if future.done():
                raise
            raise OutOfTime("the time of this run is up") from error


NO_DEADLINE = Deadline(lambda: math.inf)
"""For a run that nobody stops."""
