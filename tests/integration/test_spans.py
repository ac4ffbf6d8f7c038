"""Spans of the running service, at a receiver of OTLP on loopback."""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.command import ask
from tests.integration.conftest import Mats, rows, serving, tool
from tests.servers.chat_completions import MODEL, ChatServer
from tests.servers.site import Asked, site

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
QUERY = "give my private money back"


@dataclass
class Receiver:
    """What an OpenTelemetry collector does with `POST /v1/traces`."""

    url: str = ""
    exports: list[ExportTraceServiceRequest] = field(default_factory=list)

    def receive(self, asked: Asked) -> bytes:
        assert asked.path == "/v1/traces"
        assert asked.headers["Content-Type"] == "application/x-protobuf"
        body = gzip.decompress(asked.body) if asked.headers.get("Content-Encoding") == "gzip" else asked.body
        self.exports.append(ExportTraceServiceRequest.FromString(body))
        return ExportTraceServiceResponse().SerializeToString()

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for export in self.exports
            for resource in export.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with site(receiver.receive) as receiver.url:
        yield receiver


def attributes(of: Span) -> dict[str, object]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in of.attributes}


def test_a_request_arrives_as_one_trace_with_its_stages_and_the_model_call(receiver, tmp_path: Path):
    mats = Mats(tmp_path / "home")
    assert mats("import", "-", stdin=rows(tool("refund", description="Give money back for a payment"))).code == 0
    with ChatServer() as models:
        settings = {
            "MATS_OTEL": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SERVICE_NAME": "ours",
            **models.client_environment(), "MATS_WRITER_MODEL": "none",
        }  # fmt: skip
        with serving(mats, settings=settings) as service:
            parent = f"00-{TRACE}-{PARENT}-01"
            answer = ask(service, "/discover", {"query": QUERY}, method="POST", traceparent=parent).json
    # the end of the service has sent what was waiting
    ours = {span.name: span for span in receiver.spans if span.trace_id.hex() == TRACE}
    request, discover, call = (ours[name] for name in ("POST /discover", "discover", f"chat {MODEL}"))
    assert request.parent_span_id.hex() == PARENT
    assert discover.parent_span_id == request.span_id
    assert call.parent_span_id == ours["lexical"].parent_span_id == discover.span_id
    assert attributes(discover)["mats.query_id"] == answer["query_id"]
    assert attributes(call)["gen_ai.provider.name"] == "openai"
    assert attributes(call)["gen_ai.usage.input_tokens"] == answer["cost"]["input_tokens"] > 0
    assert request.start_time_unix_nano <= discover.start_time_unix_nano <= call.start_time_unix_nano
    assert call.end_time_unix_nano <= discover.end_time_unix_nano <= request.end_time_unix_nano
    (name,) = {one.value.string_value for one in receiver.exports[0].resource_spans[0].resource.attributes
               if one.key == "service.name"}  # fmt: skip
    assert name == "ours"
    assert all(b"private" not in export.SerializeToString() for export in receiver.exports)
