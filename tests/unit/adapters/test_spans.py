"""Spans of requests, their stages and model calls, as the SDK's exporter in memory gets them."""

import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from mats.adapters.spans import Spans, close_provider
from mats.domain.prompts.usage import Usage
from mats.domain.ranking.query import Query
from mats.domain.shortlist.trace import StageRun
from mats.ports import Answered, RequestHandled, WriterCalled
from tests.builders import a_shortlist

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def answered() -> Answered:
    shortlist = replace(a_shortlist(usage=Usage(input_tokens=900, output_tokens=40)), query=Query(query="private"))
    trace = shortlist.trace
    trace.began_ms, trace.reranker, trace.took_ms = 1_000.0, "nova-micro", {"total": 700.0}
    trace.runs = [
        StageRun("lexical", 1_001, 8),
        StageRun("encode", 1_001, 400, "encode took longer than 400 ms"),
        StageRun("rerank", 1_100, 600),
    ]
    return Answered(shortlist=shortlist)


def handled(*answers: Answered, status: int = 200, **carrier: str) -> RequestHandled:
    return RequestHandled(
        method="POST", route="/discover", status=status, began_ms=990, took_ms=720, request_id="r1", carrier=carrier,
        answers=answers,
    )  # fmt: skip


def exported(*observations) -> dict[str, ReadableSpan]:
    """The spans of these observations, by name."""
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    spans = Spans(provider, model_provider="openai")
    for observation in observations:
        spans(observation)
    return {span.name: span for span in memory.get_finished_spans()}


class SlowExporter(InMemorySpanExporter):
    """Answers only when it is told to, as a collector that cannot be reached."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def export(self, spans):
        self.asked.set()
        self.may_answer.wait(10)
        return super().export(spans)


def waiting(exporter: InMemorySpanExporter) -> TracerProvider:
    """A provider with a span that has not been sent."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    provider.get_tracer("test").start_span("waiting").end()
    return provider


def ms(span: ReadableSpan) -> float:
    assert span.start_time is not None
    assert span.end_time is not None
    return (span.end_time - span.start_time) / 1e6


def test_closing_sends_the_spans_that_are_waiting():
    exporter = InMemorySpanExporter()
    close_provider(waiting(exporter), within_s=10)
    assert [span.name for span in exporter.get_finished_spans()] == ["waiting"]


def test_closing_does_not_wait_for_a_collector_that_does_not_answer():
    exporter = SlowExporter()
    close_provider(waiting(exporter), within_s=0)
    assert exporter.asked.wait(10)
    assert exporter.get_finished_spans() == ()
    exporter.may_answer.set()


def test_a_request_has_its_answer_below_it_and_the_stages_below_that():
    spans = exported(handled(answered()))
    request, answer = spans.pop("POST /discover"), spans.pop("discover")
    assert request.parent is None
    assert request.kind is SpanKind.SERVER
    assert answer.parent == request.context
    assert all(span.parent == answer.context for span in spans.values())
    assert spans.keys() == {"lexical", "encode", "chat nova-micro"}
    assert request.attributes == {
        "http.request.method": "POST", "http.route": "/discover", "http.response.status_code": 200,
        "mats.request_id": "r1",
    }  # fmt: skip
    assert answer.attributes
    assert (answer.attributes["mats.verdict"], answer.attributes["mats.query_id"]) == ("match", "q")


def test_spans_have_the_times_of_the_trace():
    spans = exported(handled(answered()))
    assert [round(ms(spans[name])) for name in ("POST /discover", "discover", "lexical")] == [720, 700, 8]
    begin = {name: span.start_time or 0 for name, span in spans.items()}
    assert begin["discover"] - begin["POST /discover"] == pytest.approx(10e6, abs=2e6)
    assert begin["chat nova-micro"] - begin["discover"] == pytest.approx(100e6, abs=2e6)


def test_the_rerankers_call_has_the_attributes_of_the_conventions():
    call = exported(handled(answered()))["chat nova-micro"]
    assert call.kind is SpanKind.CLIENT
    assert call.attributes == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "nova-micro",
        "gen_ai.output.type": "json", "gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 40,
        "mats.stage": "rerank",
    }  # fmt: skip


def test_a_call_of_the_writer_is_a_span_of_its_own():
    usage = Usage(input_tokens=500, output_tokens=90)
    spans = exported(WriterCalled(model="nova-lite", began_ms=5, took_ms=2_000, usage=usage))
    call = spans["chat nova-lite"]
    assert (call.parent, call.kind, round(ms(call))) == (None, SpanKind.CLIENT, 2_000)
    assert call.attributes
    assert call.attributes["gen_ai.usage.output_tokens"] == 90


def test_what_failed_has_the_status_of_an_error():
    failed = WriterCalled(model="lite", began_ms=0, took_ms=1, fault="no answer")
    spans = exported(handled(answered(), status=503), failed)
    assert spans["POST /discover"].status.status_code is StatusCode.ERROR
    assert spans["encode"].status.status_code is StatusCode.ERROR
    assert spans["encode"].status.description == "encode took longer than 400 ms"
    assert spans["chat lite"].status.status_code is StatusCode.ERROR
    assert spans["lexical"].status.status_code is StatusCode.UNSET


def test_a_request_continues_the_trace_of_its_caller():
    span = exported(handled(traceparent=f"00-{TRACE}-{PARENT}-01"))["POST /discover"]
    assert span.context
    assert format(span.context.trace_id, "032x") == TRACE
    assert span.parent
    assert format(span.parent.span_id, "016x") == PARENT


def test_a_request_whose_caller_does_not_sample_has_no_spans():
    assert exported(handled(answered(), traceparent=f"00-{TRACE}-{PARENT}-00")) == {}


def test_no_span_has_the_text_of_a_query():
    assert not [span for span in exported(handled(answered())).values() if "private" in span.to_json()]


def test_without_the_setting_nothing_of_the_sdk_is_imported():
    code = (
        "import sys, pathlib, tempfile; from mats.bootstrap.local import local_system;"
        "from mats.settings import Settings;"
        "from mats.local.service import application;"
        "application(local_system(Settings(home=pathlib.Path(tempfile.mkdtemp()), encoder='none')));"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
