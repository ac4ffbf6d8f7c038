"""A month of traffic: queries and changes, the size of the system, and assumptions about the load they cause."""

from dataclasses import dataclass, replace
from typing import Any, Self

from mats.settings import Settings

PIPE_BATCH = 10
"""Changes in a batch of a Pipe: the most events that one PutEvents call takes."""
ENRICHED_AT_ONCE = 10
"""Changes in a batch. All its descriptions are written in parallel, so it takes as long as its slowest."""
ENRICHMENT_TIMEOUT_S = 300
"""Two attempts of the slowest writer call and of its repair, 60 s each, and the writes after them."""
VISIBILITY_S = ENRICHMENT_TIMEOUT_S + 60
"""Delay of a retry. AWS's rule of six times the timeout is for throttled batches; the event source's maximum
concurrency prevents them."""
MAX_RECEIVES = 12
"""Of a change, before it becomes a dead letter."""


class CannotEstimate(ValueError):
    """The traffic or the deployment cannot be priced; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Assumed load per query and per change; replace them by figures of your dashboard."""

    discovery_gb: float = 1769 / 1024
    """The memory of the discovery function; a snapshot and a restore of it are charged by this size, too."""
    discovery_s: float = 1.0
    kept_versions: int = 3
    """Versions of discovery, each with a snapshot; older ones are deleted every night."""
    queries_per_restore: int = 200
    """Queries that an execution environment answers before Lambda takes it away."""
    maintenance_gb: float = 1.0
    maintenance_s_per_1000: float = 6.0
    """Seconds of a nightly reconciliation for a thousand capabilities, most of them reads."""
    deployments: int = 4
    """In a month; after each, registrations, profiles and index are compared twice."""
    enrichment_gb: float = 1.0
    enrichment_s: float = 4.0
    query_tokens: int = 20
    profile_tokens: int = 400
    writer_input_tokens: int = 1_500
    writer_output_tokens: int = 350
    write_units: int = 66
    """Of a change: the item, twice the profile and once the version before, 8 kB each, in transactions; two marks."""
    read_units: int = 16
    reconcile_read_units: int = 26
    """Of a capability that is compared: scans of both tables, then its item, its trust and three times its profile."""
    stored_kb: float = 30.0
    """Of a capability in all tables, with earlier versions."""
    indexed_kb: float = 20.0
    """Of a capability in one copy of the index, graph included (aws-growth.json)."""
    query_log_kb: float = 8.0
    change_log_kb: float = 1.0
    receipt_kb: float = 4.0
    """Of a query's vector, its text and the ids shown; a write unit for each kB."""
    receipt_writes: int = 2
    """Before and after the ranking."""
    tally_read_units: float = 7.5
    """Of 15 candidates, each reported on by up to 30 callers; half a unit for 4 kB."""
    reported_share: float = 0.2
    """Answers that callers report on."""
    report_write_units: int = 13
    """Of a transaction: the receipt that stays, an outcome and its tally, twice each; and a place in the index."""
    feedback_gb_s: float = 0.03
    report_rows: int = 2
    """The receipt that stays, and an outcome; each is an event."""
    learning_gb_s: float = 0.03


ASSUMED = Assumptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The nodes of a domain, with a zone for each of up to three, and the limits of what is around it."""

    nodes: int
    node: str
    gb_each: int
    masters: int = 0
    master: str = ""
    enrichment_concurrency: int
    throttle_rate: int
    """Calls of the API in a second."""

    @property
    def zones(self) -> int:
        """Zones that the data nodes are in."""
        return min(self.nodes, 3)

    def but(self, **chosen: Any) -> Self:
        """This size with other values; 0 and empty texts change nothing."""
        return replace(self, **{name: value for name, value in chosen.items() if value})


SIZES = {
    "trial": Size(nodes=1, node="t3.small.search", gb_each=10, enrichment_concurrency=2, throttle_rate=20),
    "production": Size(
        nodes=3,
        node="r7g.large.search",
        gb_each=100,
        masters=3,
        master="m7g.medium.search",
        enrichment_concurrency=10,
        throttle_rate=200,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """A month of traffic.

    Raises:
        CannotEstimate: with every fault.
    """

    queries: int = 100_000
    changes: int = 1_000
    capabilities: int = 10_000
    size: str = "trial"
    network: str = "public"
    rerank_model: str = Settings().rerank_model
    writer_model: str = Settings().writer_model

    def __post_init__(self) -> None:
        faults = []
        if self.size not in SIZES:
            faults.append(f"size must be {' or '.join(SIZES)}, not {self.size!r}")
        if self.network not in ("public", "vpc"):
            faults.append(f"network must be public or vpc, not {self.network!r}")
        numbers = {"queries": self.queries, "changes": self.changes, "capabilities": self.capabilities}
        faults += [f"{name} must not be negative" for name, number in numbers.items() if number < 0]
        if faults:
            raise CannotEstimate("; ".join(faults))


def fits(traffic: Traffic, assumed: Assumptions = ASSUMED) -> bool:
    """Whether the index leaves half of the domain's storage free, which merges and a reindex need."""
    size = SIZES[traffic.size]
    copies = min(size.nodes, 3)
    return traffic.capabilities * assumed.indexed_kb * copies <= size.nodes * size.gb_each * 1e6 / 2
