"""Percentiles of measures."""

from collections.abc import Sequence

import numpy as np


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """`p50`, `p95` and `max`, to a tenth."""
    p50, p95, most = np.percentile(values, (50, 95, 100)).tolist()
    return {"p50": round(p50, 1), "p95": round(p95, 1), "max": round(most, 1)}
