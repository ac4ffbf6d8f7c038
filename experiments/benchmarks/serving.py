"""A process that answers from a registry and measures itself; it imports nothing that answers do not need.

Queries come as JSON on standard input; the measures go to standard output.
"""

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mats.bootstrap.local import local_system
from mats.domain.search.query import Query
from mats.settings import Settings
from mats.usecases.discover import Discover
from mats.usecases.models import RecentVectors

_WARM_UP = 50


def latencies(discover: Discover, texts: Sequence[str]) -> dict[str, Any]:
    """Percentiles of the latency of queries, one at a time, after a warm-up; each is encoded.

    What is in memory by then is not searched for garbage, as in `mats serve`.
    """
    gc.collect()
    gc.freeze()
    if isinstance(discover.encoder, RecentVectors):
        discover = replace(discover, encoder=discover.encoder.encoder)
    for text in texts[:_WARM_UP]:
        discover.answer(Query(query=text))
    totals: list[float] = []
    stages: dict[str, list[float]] = {}
    for text in texts:
        began = time.perf_counter()
        shortlist = discover.answer(Query(query=text))
        totals.append((time.perf_counter() - began) * 1000)
        for stage, ms in shortlist.trace.took_ms.items():
            stages.setdefault(stage, []).append(ms)
    return {
        "queries": len(totals),
        "ms": {f"p{rank}": round(float(np.percentile(totals, rank)), 2) for rank in (50, 95, 99)},
        "stages_p50_ms": {stage: round(float(np.median(values)), 2) for stage, values in stages.items()},
    }


def _serve(settings: Settings, texts: Sequence[str]) -> dict[str, Any]:
    began = time.perf_counter()
    with closing(local_system(settings)) as served:
        discover = served.discover
        discover.answer(Query(query=texts[0]))
        start_s = round(time.perf_counter() - began, 2)
        return {**latencies(discover, texts), "start_s": start_s, "resident_mb": resident_mb()}


def resident_mb() -> int:
    """The most memory that this process had resident so far.

    `ru_maxrss` would include what the parent had: a child process begins with its parent's memory, until it executes.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not Linux
        unit = 1_048_576 if sys.platform == "darwin" else 1_024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit
    return int(status.split("VmHWM:")[1].split()[0]) // 1_024


if __name__ == "__main__":
    json.dump(_serve(Settings.from_env(os.environ), json.load(sys.stdin)), sys.stdout)
