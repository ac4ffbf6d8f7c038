"""Alarms on the OpenSearch domain."""

from aws_cdk import aws_opensearchservice as opensearch

from infra.constructs import metrics
from infra.constructs.alarms import Alarms

LOW_STORAGE_PERCENT = 25
HIGH_PRESSURE_PERCENT = 95
BUSY_PERCENT = 80


def add_domain_alarms(alarms: Alarms, domain: opensearch.Domain) -> None:
    """Add the alarms on state, load and storage."""
    _add_state_alarms(alarms, domain)
    _add_load_alarms(alarms, domain)


def _add_state_alarms(alarms: Alarms, domain: opensearch.Domain) -> None:
    minute = metrics.MINUTE
    alarms.add(
        "IndexRed",
        domain.metric_cluster_status_red(period=minute),
        over=0,
        means="Part of the index is missing: answers fail or are incomplete.",
        section="The index is red",
    )
    alarms.add(
        "IndexYellow",
        domain.metric_cluster_status_yellow(period=minute),
        over=0,
        periods=(30, 30),
        means="Copies of the index are missing for half an hour: nothing is lost, but one more failure would be.",
        section="The index is yellow",
    )
    alarms.add(
        "IndexWritesBlocked",
        domain.metric_cluster_index_writes_blocked(period=minute),
        over=0,
        periods=(5, 5),
        means="The domain takes no writes, for want of storage or memory: changes wait.",
        section="Writes are blocked",
    )
    alarms.add(
        "IndexSnapshotFailing",
        domain.metric_automated_snapshot_failure(period=minute),
        over=0,
        means="No automatic snapshot was taken. The index can still be made again from Profiles.",
        section="The index is yellow",
    )


def _add_load_alarms(alarms: Alarms, domain: opensearch.Domain) -> None:
    minute = metrics.MINUTE
    alarms.add(
        "IndexBusy",
        domain.metric_cpu_utilization(period=metrics.FIVE_MINUTES),
        over=BUSY_PERCENT,
        periods=(3, 3),
        means=f"A data node is more than {BUSY_PERCENT} % busy for a quarter of an hour.",
        section="The domain is too small",
    )
    rejected = {
        name: domain.metric(f"Threadpool{pool}Rejected", statistic="Maximum", period=metrics.FIVE_MINUTES)
        for name, pool in (("searches", "Search"), ("writes", "Write"))
    }
    alarms.add(
        "IndexRejecting",
        metrics.total(rejected, each="DIFF({})", label="rejected"),  # they count since the start of a node
        over=0,
        periods=(2, 3),
        means="The domain rejects searches or writes because its queues are full.",
        section="The domain is too small",
    )
    alarms.add(
        "IndexStorageLow",
        metrics.free_storage_share(domain),
        under=LOW_STORAGE_PERCENT,
        periods=(10, 15),
        means=f"Less than {LOW_STORAGE_PERCENT} % of the domain's storage is free.",
        section="Storage runs out",
    )
    alarms.add(
        "IndexMemoryPressure",
        domain.metric_jvm_memory_pressure(period=minute),
        over=HIGH_PRESSURE_PERCENT,
        periods=(3, 3),
        means=f"The heap of a node is more than {HIGH_PRESSURE_PERCENT} % full: it may soon refuse calls.",
        section="Memory pressure",
    )
