"""Metrics as lines of the log, in CloudWatch's embedded metric format."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_lambda_powertools.metrics import EphemeralMetrics

from mats.ports import Measure


@dataclass(frozen=True, slots=True)
class CloudWatchMetrics:
    """The metrics port over standard output, which Lambda hands to CloudWatch."""

    namespace: str
    service: str

    def __call__(self, measures: Mapping[str, Measure]) -> None:
        """Note these together, in one line."""
        metrics = EphemeralMetrics(namespace=self.namespace, service=self.service)
        for name, measure in measures.items():
            metrics.add_metric(name=name, unit=measure.unit, value=measure.value)
        metrics.flush_metrics()
