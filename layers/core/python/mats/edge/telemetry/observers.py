"""The observers of a function: metrics in lines of its log, and the stages of an answer as spans."""

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from aws_lambda_powertools.metrics import EphemeralMetrics

from mats.adapters.clock import SystemClock
from mats.domain.search.trace import Span
from mats.edge.observers import MeasureObserver
from mats.ports import NO_DIMENSIONS, Answered, Measure, Observation, Observer
from mats.settings import Settings, function_version

T = TypeVar("T")
_REMOTE = {"encode": "bedrock.embed", "rerank": "bedrock.rerank", "receipt": "dynamodb.receipt"}
_OF_INDEX = ("lexical", "neural", "fetch")


def with_observers(function: str, open: Callable[..., T]) -> Callable[[Settings], T]:
    """Open with the observers of a function."""

    def opener(settings: Settings) -> T:
        measure = MeasureObserver(EmbeddedMetrics(settings.metrics, function), function_version())
        observers: Sequence[Observer] = (measure, send_spans) if settings.metrics else (send_spans,)
        return open(settings, observers=observers)

    return opener


@dataclass(frozen=True, slots=True)
class EmbeddedMetrics:
    """The port `Metrics` over CloudWatch's embedded metric format: a line for each call, with dimensions of its own."""

    namespace: str
    service: str

    def __call__(self, measures: Mapping[str, Measure], dimensions: Mapping[str, str] = NO_DIMENSIONS) -> None:
        line = EphemeralMetrics(namespace=self.namespace, service=self.service)
        for name, value in dimensions.items():
            line.add_dimension(name, value)
        for name, measure in measures.items():
            line.add_metric(name, measure.unit, measure.value)
        line.flush_metrics()


def send_spans(observation: Observation) -> None:
    """Send the stages of an answer to X-Ray's daemon, as subsegments of the function's segment, if it is sampled."""
    environment = os.environ  # noqa: TID251 - Lambda's, other for each call
    traced = dict(part.partition("=")[::2] for part in environment.get("_X_AMZN_TRACE_ID", "").split(";"))
    host, _, port = environment.get("AWS_XRAY_DAEMON_ADDRESS", "").rpartition(":")
    if not (isinstance(observation, Answered) and host and traced.get("Sampled") == "1"):
        return
    shortlist = observation.shortlist
    trace, since_s = shortlist.trace, time.time() - SystemClock().elapsed_ms() / 1000
    index = trace.index.partition("-")[0]
    *stages, whole = [_subsegment(s, index, since_s) for s in sorted(trace.spans, key=lambda s: s.stage == "total")]
    whole |= {
        "type": "subsegment",
        "trace_id": traced["Root"],
        "parent_id": traced["Parent"],
        "annotations": {"query_id": shortlist.query_id, "verdict": shortlist.verdict},
        "subsegments": stages,
    }
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as daemon:
        daemon.sendto(f'{{"format": "json", "version": 1}}\n{json.dumps(whole)}'.encode(), (host, int(port)))


def _subsegment(span: Span, index: str, since_s: float) -> dict[str, Any]:
    name = _REMOTE.get(span.stage) or (f"{index}.{span.stage}" if span.stage in _OF_INDEX else span.stage)
    return {
        "id": secrets.token_hex(8),
        "name": name,
        "start_time": since_s + span.began_ms / 1000,
        "end_time": since_s + span.ended_ms / 1000,
        **({"namespace": "remote"} if "." in name else {}),
        **({"fault": True} if span.failed else {}),
    }
