"""Runs over many capabilities: their progress, and their end if one is stopped from outside, as a Lambda invocation."""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from mats.domain.capability.capability import Id
from mats.domain.errors import OutOfTime
from mats.domain.profile.profile import ChangeResult

T = TypeVar("T")


class Progress(NamedTuple):
    """What one page of a run has done, and where the run continues if it is interrupted after it."""

    counts: Mapping[str, int]
    after: Id | None = None  # It continues after this id
    stage: int = 0  # Of several ones that list ids, the number from 0
    outcomes: Mapping[Id, ChangeResult] = MappingProxyType({})  # Of the changes that were handled here
    wait_s: int = 0  # To wait before the next page


def in_pages(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of this many; the next items are read when the page before is done."""
    remaining = iter(items)
    while page := list(islice(remaining, size)):
        yield page


READ_S, SAVE_S = 85.0, 165.0
"""The longest a batch of ten takes to be read, and to be announced, saved, indexed and marked: by the timeouts and
attempts of the stores' clients."""
FULL_S = READ_S + SAVE_S + 30  # With this much time, models have 30 s even if each store takes its longest


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time left. A step starts only if its longest duration fits; what has no limit of its own gets one here."""

    left_ms: Callable[[], float]  # Milliseconds until the run is stopped; infinite if it is not
    scale: float = 1.0  # The factor of all durations of steps: below 1 in a run too short for the longest ones

    @classmethod
    def of(cls, left_ms: Callable[[], float]) -> "Deadline":
        """The deadline of a run that begins now. With less than FULL_S it still starts steps, but may be stopped."""
        return cls(left_ms, min(1.0, left_ms() / 1000 / FULL_S))

    def allows(self, seconds: float) -> bool:
        """True if a step that takes this long would end in time."""
        return self.left_ms() >= 1000 * seconds * self.scale

    def wait_s(self, reserve_s: float) -> float | None:
        """How long to wait so that `reserve_s` is left; None: without limit."""
        left_s = self.left_ms() / 1000 - reserve_s * self.scale
        return None if math.isinf(left_s) else max(0.0, left_s)

    def call(self, work: Callable[[], T], *, reserve_s: float) -> T:
        """The result of a call, which is abandoned when only `reserve_s` is left.

        Raises OutOfTime: it was abandoned. Its thread goes on, and nobody takes its result; Exception: any exception of
        the call.
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


NO_DEADLINE = Deadline(lambda: math.inf)  # For a run that nobody stops
