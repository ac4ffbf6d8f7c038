"""The OpenSearch domain that a registry needs, from the growth that `make bench-aws BENCH=growth` measured.

The index has one shard, and a copy of it on each of up to three nodes, so every node must hold all of it: a bigger
registry, or more queries than three nodes answer, need bigger nodes and not more of them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.prices import PriceList, load_json
from infra.traffic import CannotEstimate, Traffic
from infra.vendor import ROOT

RESULTS = ROOT / "evaluation" / "results" / "aws-growth.json"
HOURS = 730
NODES = 3
_TYPES = {"r7g.large.search": (2, 16), "r7g.xlarge.search": (4, 32), "r7g.2xlarge.search": (8, 64),
          "r7g.4xlarge.search": (16, 128)}  # fmt: skip
"""Cores and GB of memory."""
_MOST_HEAP_GB = 32
_CACHE = 0.8
"""Of the memory beside the heap, for what a vector search reads."""
_BUSY = 0.5
"""Of the cores: at a higher share, queries wait for each other, and the loss of a node is not survived."""
_FREE_DISK = 2
"""Times the index: a reindex makes a second one."""
_LEAST_GB = 10
_LEAST_SHOWN_GB = 0.01
_PEAK = 10
"""Times the mean of queries a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredIndex:
    """An index of so many capabilities: processor time of a query, and memory for what a vector search reads."""

    capabilities: int
    disk_gb: float
    memory_gb: float
    cpu_ms: float
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainChoice:
    """Three nodes that carry an index and a load."""

    index: MeasuredIndex
    node: str
    gb_each: int
    usd: float
    """A month, without masters."""

    @property
    def context(self) -> str:
        """The context of a deployment with it."""
        return f"size=production instance_type={self.node} storage_gb={self.gb_each}"

    def __str__(self) -> str:
        index, how = self.index, "measured" if self.index.measured else "estimated from what was measured"
        return (
            f"The index of {index.capabilities:,} capabilities, {how}: {gigabytes(index.disk_gb)} on disk and "
            f"{gigabytes(index.memory_gb)} of memory in each copy, {index.cpu_ms:.0f} ms of a core for a query.\n"
            f'Enough for it: CONTEXT="{self.context}", {self.usd:,.0f} dollars a month for {NODES} such nodes.'
        )


def gigabytes(size: float) -> str:
    """A size in GB as text: two decimals below 1 GB, one from there on."""
    if size < _LEAST_SHOWN_GB:
        return f"under {_LEAST_SHOWN_GB} GB"
    return f"{size:.1f} GB" if size >= 1 else f"{size:.2f} GB"


def index_of(capabilities: int, *, dimension: int = 1_024, encoding: str = "float") -> MeasuredIndex:
    """The index at this size: sizes in proportion to the nearest larger one measured, or else the largest.

    Processor time between two sizes follows a power of the size, and beyond the largest the power of the last two, or
    grows in proportion if there is but one.

    Raises:
        CannotEstimate: nothing was measured.
    """
    rows = _rows(dimension, encoding)
    near = next((row for row in rows if row["documents"] >= capabilities), rows[-1])
    share, state = capabilities / near["documents"], near["as_filled"]
    return MeasuredIndex(
        capabilities=capabilities,
        disk_gb=share * state["disk_gb"],
        memory_gb=share * state["searched_gb"],
        cpu_ms=_cpu_ms(rows, capabilities),
        measured=any(row["documents"] == capabilities for row in rows),
    )


def growth_rows() -> Sequence[Mapping[str, Any]]:
    """What was measured, a row for each size, dimension and encoding."""
    return list(load_json(RESULTS)["rows"]) if RESULTS.exists() else []


def _rows(dimension: int, encoding: str) -> Sequence[Mapping[str, Any]]:
    rows = [row for row in growth_rows() if (row["dimension"], row["encoding"]) == (dimension, encoding)]
    if not rows:
        raise CannotEstimate(f"{RESULTS.name} has no index of {dimension:,} components: make bench-aws BENCH=growth")
    return sorted(rows, key=lambda row: int(row["documents"]))


def _cpu_ms(rows: Sequence[Mapping[str, Any]], capabilities: int) -> float:
    points = [(row["documents"], row["as_filled"]["node_cpu_ms"]) for row in rows]
    if capabilities <= points[0][0]:
        return float(points[0][1])
    if len(points) == 1:
        return float(points[0][1] * capabilities / points[0][0])
    above = next((at for at in range(1, len(points)) if points[at][0] >= capabilities), len(points) - 1)
    (low, low_ms), (high, high_ms) = points[above - 1], points[above]
    power = math.log(high_ms / low_ms) / math.log(high / low)
    return float(high_ms * (capabilities / high) ** power)


def domain_for(index: MeasuredIndex, per_second: float, prices: PriceList) -> DomainChoice:
    """The smallest domain in three zones for an index and so many queries a second.

    Raises:
        CannotEstimate: no type of node is big enough: the registry needs cells.
    """
    for node, (cores, memory_gb) in _TYPES.items():
        cache_gb = _CACHE * (memory_gb - min(memory_gb / 2, _MOST_HEAP_GB))
        if index.memory_gb <= cache_gb and per_second * index.cpu_ms / 1000 <= _BUSY * NODES * cores:
            each = max(_LEAST_GB, 10 * math.ceil(_FREE_DISK * index.disk_gb / 10))
            usd = prices.line(node, NODES * HOURS, "").usd + prices.line("gp3_gb", NODES * each, "").usd
            return DomainChoice(index=index, node=node, gb_each=each, usd=usd)
    raise CannotEstimate(
        f"{index.capabilities:,} capabilities and {per_second:,.0f} queries a second are more than a domain of three "
        f"{next(reversed(_TYPES))} carries: see docs/scale.md"
    )


def needs(traffic: Traffic) -> list[str]:
    """The index and the domain of a registry with this traffic, as text."""
    per_second = _PEAK * traffic.queries / (HOURS * 3_600)
    try:
        return str(domain_for(index_of(traffic.capabilities), per_second, PriceList.load())).splitlines()
    except CannotEstimate as error:
        return [str(error)]
