"""OpenTelemetry spans of requests, of the stages of their answers, and of calls of language models.

Spans are made after the fact, from the times that the trace of an answer has. They hold no text of callers or
registrations. The names of attributes are those of the semantic conventions for HTTP and for generative AI.
"""

import threading
import time
from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from mats import __version__
from mats.domain.prompts.usage import Usage
from mats.domain.shortlist.trace import StageRun
from mats.domain.text.words import clip
from mats.ports import Answered, Observation, RequestHandled, WriterCalled

Attributes = Mapping[str, AttributeValue]
_SERVER_FAULT, _MAX_FAULT = 500, 300
_CLOSE_S = 1.0


def exporting_provider() -> TracerProvider:
    """A provider that sends spans by OTLP over HTTP, as the standard OTEL_ variables say; its service is `mats`."""
    resource = Resource.create({SERVICE_NAME: "mats"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def close_provider(provider: TracerProvider, within_s: float = _CLOSE_S) -> None:
    """Send the spans that are waiting, for so long at most: without a collector, the exporter retries for seconds."""
    closing = threading.Thread(target=provider.shutdown, name="close-spans", daemon=True)
    closing.start()
    closing.join(within_s)


class Spans:
    """An observer that makes the spans of requests and of calls of the writer.

    `model_provider` is the `gen_ai.provider.name` of the language models.
    """

    def __init__(self, provider: TracerProvider, *, model_provider: str) -> None:
        self._tracer = provider.get_tracer("mats", __version__)
        self._model_provider = model_provider

    def __call__(self, observation: Observation) -> None:
        match observation:
            case RequestHandled():
                self._add_request(observation)
            case WriterCalled(model=model, usage=usage):
                call = StageRun("write", observation.began_ms, observation.took_ms, observation.fault)
                self._add(f"chat {model}", Context(), call, SpanKind.CLIENT, self._call_attributes(model, usage))
            case _:
                pass

    def _add_request(self, request: RequestHandled) -> None:
        run = StageRun("request", request.began_ms, request.took_ms)
        attributes: Attributes = {
            "http.request.method": request.method,
            "http.route": request.route,
            "http.response.status_code": request.status,
            "mats.request_id": request.request_id,
        }
        parent = TraceContextTextMapPropagator().extract(request.carrier, Context())
        span = self._begin(f"{request.method} {request.route}", parent, run, SpanKind.SERVER, attributes)
        if span.is_recording():
            for answered in request.answers:
                self._add_answer(answered, set_span_in_context(span, Context()))
            if request.status >= _SERVER_FAULT:
                span.set_attribute("error.type", str(request.status))
                span.set_status(Status(StatusCode.ERROR))
        _end(span, run)

    def _add_answer(self, answered: Answered, parent: Context) -> None:
        shortlist, trace = answered.shortlist, answered.shortlist.trace
        run = StageRun("discover", trace.began_ms, trace.took_ms.get("total", 0.0))
        attributes: Attributes = {
            "mats.query_id": shortlist.query_id,
            "mats.verdict": shortlist.verdict,
            "mats.degraded": list(shortlist.degraded),
            "mats.without": trace.without,
            "mats.candidates": len(shortlist.ranked),
            "mats.shown": shortlist.shown,
            "mats.index": trace.index,
        }
        span = self._begin("discover", parent, run, SpanKind.INTERNAL, attributes)
        within = set_span_in_context(span, Context())
        for stage in trace.runs:
            if stage.stage == "rerank" and trace.reranker:
                attributes = {**self._call_attributes(trace.reranker, trace.usage), "mats.stage": "rerank"}
                self._add(f"chat {trace.reranker}", within, stage, SpanKind.CLIENT, attributes)
            else:
                self._add(stage.stage, within, stage, SpanKind.INTERNAL, {"mats.stage": stage.stage})
        _end(span, run)

    def _call_attributes(self, model: str, usage: Usage) -> Attributes:
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._model_provider,
            "gen_ai.request.model": model,
            "gen_ai.output.type": "json",
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
        }

    def _add(self, name: str, parent: Context, run: StageRun, kind: SpanKind, attributes: Attributes) -> None:
        span = self._begin(name, parent, run, kind, attributes)
        if run.fault:
            span.set_attribute("error.type", "_OTHER")
            span.set_status(Status(StatusCode.ERROR, clip(run.fault, _MAX_FAULT)))
        _end(span, run)

    def _begin(self, name: str, parent: Context, run: StageRun, kind: SpanKind, attributes: Attributes) -> Span:
        return self._tracer.start_span(name, parent, kind, attributes, start_time=_epoch_ns(run.began_ms))


def _end(span: Span, run: StageRun) -> None:
    span.end(_epoch_ns(run.began_ms + run.took_ms))


def _epoch_ns(monotonic_ms: float) -> int:
    """A time of `perf_counter`, as nanoseconds since 1970."""
    return time.time_ns() - time.perf_counter_ns() + int(monotonic_ms * 1e6)
