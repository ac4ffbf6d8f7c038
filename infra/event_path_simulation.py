"""How long a profile takes to appear under a load of changes: a simulation of the event path, `make simulate`.

Change -> stream shard -> Pipe (batches in order) -> bus -> queue -> enrichment (batches of ten) -> index. A change is
findable when its raw profile is indexed, and complete when a writer's profile is. A call that the quota of a model does
not admit in time fails; its change returns to the queue after the visibility timeout, and becomes a dead letter after
the last receive. Shards and quotas do not burst, so results lean to the slow side. Nothing is fetched or called.
"""

import argparse
import heapq
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from infra.traffic import ENRICHED_AT_ONCE, MAX_RECEIVES, PIPE_BATCH, SIZES, VISIBILITY_S

_PIPE_WAIT_S = 0.25
"""A Pipe polls its shard four times a second."""
_PERCENTILES = (50, 99, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Changes, the limits they meet, and assumed durations. Times are in seconds, quotas in calls a minute."""

    rate: float = 1_000.0
    """Changes in a second."""
    seconds: float = 600.0
    shards: int = 8
    """Of the table's stream: a partition takes 1,000 write units a second, and a registration needs 4 to 8."""
    concurrency: int = SIZES["production"].enrichment_concurrency
    """Batches of changes that are enriched at once."""
    encoder_per_minute: float = 6_000.0
    writer_per_minute: float = 2_000.0
    pipe_s: float = 0.05
    """Of a Pipe for a batch and its PutEvents call."""
    read_s: float = 0.05
    encode_s: float = 0.15
    index_s: float = 0.15
    """Of saving a batch and writing it into the index."""
    write_s: float = 2.5
    """Median of a writer's call; durations are log-normal."""
    write_spread: float = 0.3
    """Standard deviation of the logarithm of a writer's call."""
    patience_s: float = 8.0
    """After which a call that is throttled gives up: the SDK's four attempts."""
    seed: int = 1

    def faults(self) -> list[str]:
        """Faults of these numbers, one sentence each."""
        return [
            f"{each.name} must be above 0"
            for each in fields(self)
            if each.name not in ("seed", "write_spread", "patience_s") and getattr(self, each.name) <= 0
        ]


class Quota:
    """Calls admitted at a steady rate, counted by second, so that they may be asked for in any order."""

    def __init__(self, per_minute: float, patience_s: float) -> None:
        self._per_s = per_minute / 60
        self._patience_s = patience_s
        self._admitted: dict[int, int] = {}
        self.refused = 0

    def admit(self, at: float) -> float | None:
        """The time at which a call made at this time is admitted, or None if that is too late."""
        for second in range(int(at), int(at + self._patience_s) + 1):
            taken = self._admitted.get(second, 0)
            if taken < int((second + 1) * self._per_s) - int(second * self._per_s):
                self._admitted[second] = taken + 1
                return max(at, second)
        self.refused += 1
        return None


@dataclass(slots=True)
class Times:
    """Results for the changes: seconds from a change to its event, and how many became dead letters."""

    findable: dict[int, float] = field(default_factory=dict)
    complete: dict[int, float] = field(default_factory=dict)
    dead: int = 0
    finished_s: float = 0.0
    """When the last batch ended, from the first change."""


def simulate(load: Load) -> dict[str, Any]:
    """The result of one load: percentiles in seconds, counts, and what limits it."""
    faults = load.faults()
    if faults:
        raise ValueError("; ".join(faults))
    draw = np.random.default_rng(load.seed)
    made = list(_changes(load, draw))
    enrichment = _Enrichment(load, made, draw)
    times = enrichment.run(_queue_times(load, made))
    return {
        "load": asdict(load),
        "changes": len(made),
        "findable_s": _percentiles(times.findable.values()),
        "complete_s": _percentiles(times.complete.values()),
        "complete": len(times.complete),
        "dead_letters": times.dead,
        "refused_calls": {"encoder": enrichment.encoder.refused, "writer": enrichment.writer.refused},
        "drained_after_s": round(times.finished_s, 1),
        "bounds_per_s": bounds(load),
    }


def bounds(load: Load) -> dict[str, float]:
    """Changes in a second that each stage can pass; the least limits the path."""
    batch_s = load.read_s + load.encode_s + 2 * load.index_s + load.write_s
    return {
        "pipe": load.shards * PIPE_BATCH / load.pipe_s,
        "functions": load.concurrency * ENRICHED_AT_ONCE / batch_s,
        "encoder": load.encoder_per_minute / 60 / 2,
        "writer": load.writer_per_minute / 60,
    }


def _changes(load: Load, draw: np.random.Generator) -> Iterator[float]:
    """Times of the changes, a Poisson process."""
    at = draw.exponential(1 / load.rate)
    while at < load.seconds:
        yield at
        at += draw.exponential(1 / load.rate)


def _queue_times(load: Load, made: Sequence[float]) -> list[float]:
    """When each change reaches the queue: a shard's batches are carried one after the other."""
    queued = [0.0] * len(made)
    for shard in range(load.shards):
        mine, free, i = range(shard, len(made), load.shards), 0.0, 0
        while i < len(mine):
            start = max(free, made[mine[i]] + _PIPE_WAIT_S)
            batch = [n for n in mine[i : i + PIPE_BATCH] if made[n] <= start]
            free = start + load.pipe_s
            for n in batch:
                queued[n] = free
            i += len(batch)
    return queued


class _Enrichment:
    """The function's batches over a queue; `run` gives the times of every change."""

    def __init__(self, load: Load, made: Sequence[float], draw: np.random.Generator) -> None:
        self._load, self._made, self._draw = load, made, draw
        self.encoder = Quota(load.encoder_per_minute, load.patience_s)
        self.writer = Quota(load.writer_per_minute, load.patience_s)
        self.times = Times()

    def run(self, queued: Sequence[float]) -> Times:
        """Take batches until the queue is empty."""
        waiting = sorted((at, 1, n) for n, at in enumerate(queued))  # (visible at, receive, change)
        free = [0.0] * self._load.concurrency
        while waiting:
            start = max(heapq.heappop(free), waiting[0][0])
            batch = [heapq.heappop(waiting)]
            while waiting and len(batch) < ENRICHED_AT_ONCE and waiting[0][0] <= start:
                batch.append(heapq.heappop(waiting))
            end, failed = self._enrich(start, [n for _, _, n in batch])
            for _, receive, n in batch:
                if n in failed and receive < MAX_RECEIVES:
                    heapq.heappush(waiting, (start + VISIBILITY_S, receive + 1, n))
                elif n in failed:
                    self.times.dead += 1
            heapq.heappush(free, end)
            self.times.finished_s = max(self.times.finished_s, end)
        return self.times

    def _enrich(self, start: float, batch: Sequence[int]) -> tuple[float, set[int]]:
        """The end of a batch, and its changes that return to the queue."""
        load, times = self._load, self.times
        read = start + load.read_s
        encoded = {n: self._call(self.encoder, read, load.encode_s) for n in batch}
        failed = {n for n, at in encoded.items() if at is None}
        indexed = max(at or read + load.patience_s for at in encoded.values()) + load.index_s
        ends = [indexed]
        for n in batch:
            times.findable.setdefault(n, indexed - self._made[n])
            written = self._call(self.writer, indexed, load.write_s * self._draw.lognormal(0, load.write_spread))
            done = written and self._call(self.encoder, written, load.encode_s)
            if done is None:
                failed.add(n)
                ends.append(indexed + load.patience_s)
                continue
            ends.append(done + load.index_s)
            if n not in failed:
                times.complete[n] = ends[-1] - self._made[n]
        return max(ends), failed

    @staticmethod
    def _call(quota: Quota, at: float, seconds: float) -> float | None:
        """When a call that takes these seconds ends."""
        start = quota.admit(at)
        return None if start is None else start + seconds


def _percentiles(values: Iterable[float]) -> dict[str, float]:
    ranked = sorted(values)
    return {f"p{p}": round(ranked[min(len(ranked) - 1, len(ranked) * p // 100)], 1) for p in _PERCENTILES if ranked}


def scenarios(load: Load) -> dict[str, Load]:
    """The same load as the production size has it, with more functions, with higher quotas, and with both."""
    raised = replace(load, encoder_per_minute=150_000.0, writer_per_minute=66_000.0)
    return {
        "production": load,
        "too many functions for the quota": replace(load, concurrency=100),
        "raised quotas": raised,
        "raised quotas and functions": replace(raised, concurrency=500),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the result as JSON."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__.splitlines()[0])
    for each in fields(Load):
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default)
    parser.add_argument("--scenarios", action="store_true", help="this load in four configurations")
    chosen = vars(parser.parse_args(arguments))
    several = chosen.pop("scenarios")
    load = Load(**chosen)
    if load.faults():
        parser.error("; ".join(load.faults()))
    result = {name: simulate(one) for name, one in scenarios(load).items()} if several else simulate(load)
    json.dump(result, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
