"""The sizes of a deployment, and the limits of the event path; without the CDK."""

from dataclasses import dataclass

ENRICHMENT_TIMEOUT_S = 300
"""Two attempts of the slowest writer call and of its repair, 60 s each, and the writes after them."""
VISIBILITY_S = ENRICHMENT_TIMEOUT_S + 60
"""Delay of a retry. AWS's rule of six times the timeout is for throttled batches; the event source's maximum
concurrency prevents them."""
LEARNING_TIMEOUT_S = 60
MAX_RECEIVES = 50
"""Receives of a change or a report before it becomes a dead letter: five hours of an outage, since each hides it for
`VISIBILITY_S`. To hide what waits for a model longer would take an endpoint of SQS in a network of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The nodes of a domain, with a zone for each of up to three."""

    nodes: int
    node: str
    gb_each: int
    masters: int = 0
    master: str = "m7g.medium.search"

    @property
    def zones(self) -> int:
        """Zones that the data nodes are in."""
        return min(self.nodes, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size(Nodes):
    """The nodes of a deployment, and the limits of what is around them."""

    enrichment_concurrency: int
    throttle_rate: int  # Calls of the API in a second
    kept_versions: int = 1
    """The newest of discovery, which stay, as does one that an alias names. Each has a snapshot, which is paid for."""


SIZES = {
    "small": Size(nodes=0, node="", gb_each=0, enrichment_concurrency=2, throttle_rate=20),
    "trial": Size(nodes=1, node="t3.small.search", gb_each=10, enrichment_concurrency=2, throttle_rate=20),
    "production": Size(
        nodes=3,
        node="r7g.large.search",
        gb_each=40,  # twice what the index of a million capabilities and its successor in a reindex take
        enrichment_concurrency=10,
        throttle_rate=200,
        kept_versions=3,
    ),
}
