"""Metrics as log lines in CloudWatch's embedded metric format (EMF): docs/decisions/0062."""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from mats.ports import NO_DIMENSIONS, Measure


@dataclass(frozen=True, slots=True)
class CloudWatchMetrics:
    """The port `Metrics` over standard output, from where Lambda takes it to CloudWatch."""

    namespace: str
    service: str

    def __call__(self, measures: Mapping[str, Measure], dimensions: Mapping[str, str] = NO_DIMENSIONS) -> None:
        named = {**dimensions, "service": self.service}
        declared = {
            "Namespace": self.namespace,
            "Dimensions": [list(named)],
            "Metrics": [{"Name": name, "Unit": measure.unit} for name, measure in measures.items()],
        }
        line = {
            "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [declared]},
            **named,
            **{name: [float(measure.value)] for name, measure in measures.items()},
        }
        sys.stdout.write(f"{json.dumps(line, separators=(',', ':'))}\n")
        sys.stdout.flush()
