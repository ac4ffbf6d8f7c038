"""Metrics in Prometheus' text format. No label has an id, a caller or any text of theirs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from mats.domain.errors import DependencyFailed
from mats.ports import (
    Answered,
    BatchDelayed,
    BatchProcessed,
    FeedbackRecorded,
    ModelsRefused,
    Observation,
    OperationFailed,
    RequestHandled,
    ServiceState,
    WriterCalled,
)

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_MODEL_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class PrometheusMetrics:
    """An observer whose counts a scrape reads; `read_state` gives what is counted at each scrape."""

    def __init__(self, read_state: Callable[[], ServiceState]) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, help: str, *labels: str) -> Counter:
            return Counter(f"mats_{name}", help, labels, registry=registry)

        def histogram(name: str, help: str, *labels: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
            return Histogram(f"mats_{name}_seconds", help, labels, registry=registry, buckets=buckets)

        self._requests = counter("requests", "Requests that were answered.", "method", "route", "status")
        self._request_time = histogram("request", "Time of a request.", "route")
        self._answers = counter("answers", "Answers to searches.", "verdict")
        self._answer_time = histogram("answer", "Time of an answer, from the request's parse to the shortlist.")
        self._stage_time = histogram("stage", "Time of a stage of an answer.", "stage")
        self._degraded = counter("degraded", "Answers without a part, by the part.", "part")
        self._failures = counter("failures", "Operations that failed on the service's side.", "operation")
        self._feedback = counter("feedback", "Feedback that was recorded.")
        self._outcomes = counter("outcomes", "Outcomes of results that callers reported.", "event")
        self._changes = counter("changes", "Changes that were processed, by what became of them.", "result")
        self._calls = counter("model_calls", "Calls of language models.", "role", "result")
        self._call_time = histogram("model_call", "Time of these calls.", "role", buckets=_MODEL_SECONDS)
        self._refusals = counter("model_refusals", "Refusals of models that refuse every request.", "role", "model")
        registry.register(_StateCollector(read_state))
        ProcessCollector(registry=registry)

    def render(self) -> bytes:
        return generate_latest(self._registry)

    def __call__(self, observation: Observation) -> None:
        match observation:
            case RequestHandled(method=method, route=route, status=status, took_ms=ms):
                self._requests.labels(method, route, str(status)).inc()
                self._request_time.labels(route).observe(ms / 1000)
            case Answered():
                self._count_answer(observation)
            case OperationFailed(operation=operation):
                self._failures.labels(operation).inc()
            case FeedbackRecorded(new=new):
                self._feedback.inc()
                for outcome in new:
                    self._outcomes.labels(outcome.event).inc()
            case BatchProcessed(outcomes=outcomes):
                for result in outcomes.values():
                    self._changes.labels(result).inc()
            case BatchDelayed(changes=changes):
                self._changes.labels("delayed").inc(changes)
            case WriterCalled(took_ms=ms, failed=failed):
                self._calls.labels("writer", "failed" if failed else "answered").inc()
                self._call_time.labels("writer").observe(ms / 1000)
            case ModelsRefused(refused=refused):
                for refusal in refused:
                    self._refusals.labels(refusal.role, refusal.model).inc()

    def _count_answer(self, answered: Answered) -> None:
        shortlist, trace = answered.shortlist, answered.shortlist.trace
        self._answers.labels(shortlist.verdict).inc()
        for stage, ms in trace.took_ms.items():
            (self._answer_time if stage == "total" else self._stage_time.labels(stage)).observe(ms / 1000)
        if "rerank" in trace.took_ms:
            self._calls.labels("reranker", "answered").inc()
            self._call_time.labels("reranker").observe(trace.took_ms["rerank"] / 1000)
        elif "llm" in trace.degraded:
            self._calls.labels("reranker", "failed").inc()
        for part in frozenset(shortlist.degraded):
            self._degraded.labels(part).inc()
        for refusal in trace.refused:
            self._refusals.labels(refusal.role, refusal.model).inc()


class _StateCollector(Collector):
    """Contents and spending of the service, or just `mats_state_readable` 0 where they cannot be read."""

    def __init__(self, read_state: Callable[[], ServiceState]) -> None:
        self._read_state = read_state

    def describe(self) -> Iterator[Metric]:
        """Nothing: else the registry reads the state to learn the names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        try:
            state = self._read_state()
        except DependencyFailed:
            yield GaugeMetricFamily("mats_state_readable", _READABLE, value=0)
            return
        yield GaugeMetricFamily("mats_state_readable", _READABLE, value=1)
        help = "Registered capabilities by kind and state of their profile."
        yield _by_labels(GaugeMetricFamily, "mats_capabilities", help, ["kind", "state"], state.capabilities)
        yield GaugeMetricFamily("mats_capabilities_findable", "Capabilities that a search can find.", state.findable)
        yield GaugeMetricFamily("mats_changes_waiting", "Changes that wait or are being processed.", state.waiting)
        yield GaugeMetricFamily("mats_changes_oldest_seconds", "Age of the first change in the queue.", state.oldest_s)
        yield GaugeMetricFamily("mats_changes_dead", "Changes that failed too often.", state.dead)
        sources = {(result,): count for result, count in state.sources.items()}
        yield _by_labels(GaugeMetricFamily, "mats_sources", "Sources by their latest sync.", ["sync"], sources)
        known = {("hit",): state.vectors.get(True, 0), ("miss",): state.vectors.get(False, 0)}
        help = "Vectors of queries that were wanted, by whether they were in memory."
        yield _by_labels(CounterMetricFamily, "mats_query_vectors", help, ["cache"], known)
        tokens: dict[tuple[str, str], float] = {}
        for model, spent in state.usage.items():
            tokens |= {(model, "input"): spent.input_tokens, (model, "output"): spent.output_tokens}
        labels = ["model", "direction"]
        yield _by_labels(CounterMetricFamily, "mats_model_tokens", "Tokens of model calls.", labels, tokens)
        costs = {(model,): spent.usd for model, spent in state.usage.items() if spent.usd is not None}
        help = "Cost of model calls; absent without a known price."
        yield _by_labels(CounterMetricFamily, "mats_model_usd", help, ["model"], costs)


_READABLE = "Whether the state of the registry could be read."


def _by_labels(
    family: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    help: str,
    labels: Sequence[str],
    counts: Mapping[Any, float],
) -> Metric:
    """A metric with these numbers, each under a tuple of the values of its labels."""
    metric = family(name, help, labels=labels)
    for values, count in counts.items():
        metric.add_metric(values, count)
    return metric
