"""Metrics as log lines in CloudWatch's embedded metric format (EMF)."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_lambda_powertools.metrics import EphemeralMetrics

from mats.ports import NO_DIMENSIONS, Measure


@dataclass(frozen=True, slots=True)
class CloudWatchMetrics:
    """The port `Metrics` over standard output, from where Lambda takes it to CloudWatch."""

    namespace: str
    service: str

    def __call__(self, measures: Mapping[str, Measure], dimensions: Mapping[str, str] = NO_DIMENSIONS) -> None:
        metrics = EphemeralMetrics(namespace=self.namespace, service=self.service)
        for name, value in dimensions.items():
            metrics.add_dimension(name, value)
        for name, measure in measures.items():
            metrics.add_metric(name=name, unit=measure.unit, value=measure.value)
        metrics.flush_metrics()
