"""Percentiles of times."""

from collections.abc import Sequence

import numpy as np


def percentiles(values: Sequence[float], *ranks: int, digits: int = 2) -> dict[str, float]:
    """`p50` and so on by rank."""
    return {f"p{rank}": round(float(np.percentile(values, rank)), digits) for rank in ranks}
