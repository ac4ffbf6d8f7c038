"""Latencies of several variants of the pipeline in one run, so that whatever else the machine does falls on all."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mats.domain.ranking.query import Query
from mats.evaluation.percentiles import percentiles
from mats.evaluation.systems.base import LONGEST_QUERY

Answering: TypeAlias = Callable[[Query], object]

_BLOCK = 50


def compare_latencies(
    variants: Mapping[str, Answering], texts: Sequence[str], *, between: Callable[[], object] | None = None
) -> dict[str, Any]:
    """The latency of every variant, and its p50 beside that of the first one; each answers every text.

    Variants take turns block by block of texts, and another one begins each block; the first block is asked once
    before, as a warm-up. `between` runs after the block of a variant and is not measured.
    """
    names, took = list(variants), dict[str, list[float]]()
    pause = between or (lambda: None)
    for name in names:
        _answer_all(variants[name], texts[:_BLOCK])
        pause()
    for number, start in enumerate(range(0, len(texts), _BLOCK)):
        turn = number % len(names)
        for name in [*names[turn:], *names[:turn]]:
            took.setdefault(name, []).extend(_answer_all(variants[name], texts[start : start + _BLOCK]))
            pause()
    first = np.array(took[names[0]])
    return {name: _summary(np.array(took[name]), first) for name in names}


def _answer_all(answer: Answering, texts: Sequence[str]) -> list[float]:
    """Milliseconds of each answer."""
    times = []
    for text in texts:
        query = Query(query=text[:LONGEST_QUERY])
        began = time.perf_counter()
        answer(query)
        times.append((time.perf_counter() - began) * 1000)
    return times


def _summary(times: npt.NDArray[np.float64], first: npt.NDArray[np.float64]) -> dict[str, Any]:
    p50, of_first = float(np.median(times)), float(np.median(first))
    return {
        "answers": len(times),
        "ms": percentiles(times.tolist(), 50, 95, 99),
        "p50_more_ms": round(p50 - of_first, 2),
        "p50_ratio": round(p50 / of_first, 3),
    }
