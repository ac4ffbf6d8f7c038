"""What functions log, count and trace, as CloudWatch and X-Ray get it; and the queries of operators over that log."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from infra.queries import saved_queries
from mats.domain.search.trace import Span
from mats.edge.telemetry import observers
from mats.edge.telemetry.observers import EmbeddedMetrics, send_spans, with_observers
from mats.ports import Answered, Measure, OperationFailed
from mats.settings import Settings
from tests.aws import insights
from tests.builders import a_profile, a_shortlist
from tests.conftest import ROOT

SCRIPT = """
import json, logging, sys
from dataclasses import replace
from types import SimpleNamespace
from mats.domain.errors import DependencyFailed
from mats.domain.prompts.usage import Usage
from mats.domain.search.query import Query
from mats.domain.search.verdict import Verdict
from mats.edge.changes import ChangeProcessor, process_batch
from mats.edge.observers import LogObserver
from mats.edge.telemetry.log import API, LOGGER, observe
from mats.ports import Answered, OperationFailed, QueuedChange
from tests.aws_events import sqs_batch
from tests.builders import a_profile, a_registration, a_shortlist
from tests.fakes import FakeEncoder, raising
from tests.world import World

CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=512, invoked_function_arn="arn", aws_request_id="lambda-1"
)
FOUND = a_profile(name="refund")

def discover(event, context):
    for text, verdict, usd, ms, lacks in (
        ("give money back", Verdict.MATCH, 0.002, 900.0, []),
        ("book a table", Verdict.NONE, 0.001, 800.0, []),
        ("book a table", Verdict.NONE, 0.001, 2900.0, ["llm"]),
        (chr(0x202E) + "wish", Verdict.WEAK, None, 5.0, []),
    ):
        usage = Usage(input_tokens=100, output_tokens=10, usd=usd)
        took = {"encode": 90.0, "lexical": 9.0, "neural": 8.0, "rerank": ms / 2, "total": ms}
        trace = dict(took_ms=took, degraded=lacks, usage=usage, reranker="micro")
        trace["faults"] = [f"rerank: took longer than 2500 ms"] if lacks else []
        answer = a_shortlist(*[FOUND] * 30, verdict=verdict, **trace)
        answer = replace(answer, query=Query(query=text), query_id=text[:4])
        LogObserver()(Answered(shortlist=answer, request_id="api-1"))
    LOGGER.info('{"event": "forged"}')
    LOGGER.info(chr(0xD800))
    try:
        1 / 0
    except ZeroDivisionError:
        logging.getLogger("mats").exception("a bug")

observe("discovery", correlation=API)(discover)({"requestContext": {"requestId": "api-1"}}, CONTEXT)
world = World(encoder=FakeEncoder())
world.registry.put([a_registration(name="refund_payment", namespace="com.acme")])
processor = ChangeProcessor(world.enrich, dict)
enrich = observe("enrichment")(lambda event, context: process_batch(event, processor))
change = QueuedChange(1, "e-1", "Registry", "INSERT", "com.acme/refund_payment", "2026-01-01T00:00:00Z", 1)
batch = sqs_batch([change])
read, world.registry.get = world.registry.get, raising(DependencyFailed("down"))
batch["Records"][0]["attributes"] = {"ApproximateReceiveCount": "1"}
enrich(batch, CONTEXT)
world.registry.get = read
batch["Records"][0]["attributes"] = {"ApproximateReceiveCount": "2"}
enrich(batch, CONTEXT)
"""


@pytest.fixture(scope="module")
def written() -> list[str]:
    """The lines that two functions write; in a process of its own, because Powertools takes the logger over."""
    environment = {
        **os.environ, "AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_LAMBDA_FUNCTION_VERSION": "7", "MATS_METRICS": "mats-test",
        "_X_AMZN_TRACE_ID": "Root=1-0a1b2c3d-0a1b2c3d0a1b2c3d0a1b2c3d;Parent=0a1b2c3d0a1b2c3d;Sampled=1",
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()


@pytest.fixture(scope="module")
def log(written) -> list[dict]:
    return [json.loads(line) for line in written]


def records(log, **fields) -> list[dict]:
    return [record for record in log if fields.items() <= record.items()]


def test_a_wide_record_has_its_fields_beside_those_of_its_call(log):
    first, *_ = found = records(log, event="discovered")
    assert first | {
        "level": "INFO", "service": "mats", "function": "discovery", "version": "7", "cold_start": True,
        "function_request_id": "lambda-1", "correlation_id": "api-1", "request_id": "api-1", "message": "discovered",
        "xray_trace_id": "1-0a1b2c3d-0a1b2c3d0a1b2c3d0a1b2c3d", "verdict": "match",
        "took_ms": {"encode": 90, "lexical": 9, "neural": 8, "rerank": 450, "total": 900},
    } == first  # fmt: skip
    assert first["timestamp"].endswith("+00:00")
    assert next(reversed(first)) == "candidates", "Logs Insights extracts the first 200 fields, and these are many"
    assert len(found) == 4


def test_no_text_hides_in_a_line_or_is_taken_for_a_record(written, log):
    assert all(line.isascii() and line.isprintable() for line in written)
    assert records(log, query="\u202ewish")
    assert records(log, message="\ud800")
    assert records(log, message='{"event": "forged"}')
    assert not records(log, event="forged")


def test_an_error_has_its_name_and_its_stack(log):
    (found,) = records(log, level="ERROR")
    assert (found["message"], found["exception_name"]) == ("a bug", "ZeroDivisionError")
    assert "division by zero" in found["exception"]


def test_a_change_is_followed_by_its_event_from_delivery_to_delivery(log):
    found = [(each["result"], each["event_id"], each["receives"]) for each in records(log, event="change")]
    assert found == [("degraded", "e-1", 1), ("indexed", "e-1", 2)]


def test_a_cold_start_is_counted_once(log):
    cold = [record for record in log if "ColdStart" in record]
    assert [(each["ColdStart"], each["service"]) for each in cold] == [([1.0], "discovery")]
    assert cold[0]["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "mats-test"
    assert {each["cold_start"] for each in records(log, function="enrichment")} == {False}


ROWS = {
    "registration": [{"result": "indexed", "receives": 2}, {"result": "degraded", "receives": 1}],
    "slow": [{"total": 2900.0, "fault": "rerank: took longer than 2500 ms"}, {"total": 900.0}, {"total": 800.0}, {}],
    "cost": [{"model": "micro", "answers": 4, "dollars": 0.004, "read": 400, "written": 40}],
    "degraded": [{"lacks": "llm", "answers": 1, "example": "book"}],
    "unserved": [{"request": "book a table", "asked": 2, "best_candidate": "com.acme.pay/refund"}, {"verdict": "weak"}],
}
"""What each query finds in this log: its rows, in order, by some of their fields."""


@pytest.mark.parametrize("name", ROWS)
def test_each_question_of_an_operator_is_answered_by_its_query(log, name):
    query = saved_queries()[name]
    found = insights.run(query.lines, [record for record in log if record.get("function") == query.function])
    assert len(found) == len(ROWS[name])
    assert all(expected.items() <= row.items() for row, expected in zip(found, ROWS[name], strict=True)), found
    assert all(None not in (value for key, value in row.items() if key != "fault") for row in found[:1])


def test_every_query_is_on_the_page():
    page = (ROOT / "docs" / "what-functions-log.md").read_text("utf-8")
    assert saved_queries().keys() == ROWS.keys()
    assert all(f"`mats/{name}`" in page for name in ROWS)


# --- metrics ---

SOME = {"Answers": Measure(True, "Count"), "TotalMs": Measure(41.5, "Milliseconds"), "Usd": Measure(0.0001, "None")}


def lines(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_measures_of_one_call_are_one_line_with_namespace_and_service(capsys):
    EmbeddedMetrics("mats-test", "discovery")(SOME)
    (line,) = lines(capsys)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"], line["service"]) == (
        "mats-test", [["service"]], "discovery",
    )  # fmt: skip
    assert {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]} == {
        "Answers": "Count", "TotalMs": "Milliseconds", "Usd": "None",
    }  # fmt: skip
    assert [repr(line[name]) for name in SOME] == ["[1.0]", "[41.5]", "[0.0001]"]
    assert isinstance(line["_aws"]["Timestamp"], int)


def test_dimensions_are_added_to_the_services_name_for_one_call(capsys):
    emit = EmbeddedMetrics("mats", "enrichment")
    emit({"ModelRefused": Measure(3, "Count")}, {"model": "lite", "role": "writer"})
    emit({"Indexed": Measure(1, "Count")})
    first, second = lines(capsys)
    assert sorted(first["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0]) == ["model", "role", "service"]
    assert (first["model"], first["role"], first["ModelRefused"]) == ("lite", "writer", [3.0])
    assert second["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"]]


@pytest.mark.parametrize(("namespace", "count"), [("mats", 1), ("", 0)])
def test_metrics_are_written_where_there_is_a_namespace(capsys, namespace, count):
    opened = with_observers("feedback", lambda settings, observers: observers)(Settings(metrics=namespace))
    for observe in opened:
        observe(OperationFailed(operation="get", error=None))
    assert [(line["Failed"], line["service"]) for line in lines(capsys)] == [([1.0], "feedback")] * count


# --- spans ---

STAGES = (
    Span("encode", 1_000, 1_100), Span("lexical", 1_000, 1_020), Span("neural", 1_100, 1_130),
    Span("fetch", 1_130, 1_140), Span("measure", 1_140, 1_150), Span("rerank", 1_140, 3_640, failed=True),
    Span("total", 1_000, 3_650), Span("receipt", 1_140, 3_655),
)  # fmt: skip
TRACED = "Root=1-0a1b2c3d-0a1b2c3d0a1b2c3d0a1b2c3d;Parent=0a1b2c3d0a1b2c3e;Sampled=1;Lineage=x:0"


@pytest.fixture
def daemon(monkeypatch) -> Iterator[socket.socket]:
    """X-Ray's daemon, and the environment of a sampled call."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(5)
        monkeypatch.setenv("AWS_XRAY_DAEMON_ADDRESS", f"127.0.0.1:{listening.getsockname()[1]}")
        monkeypatch.setenv("_X_AMZN_TRACE_ID", TRACED)
        yield listening


def answer(index: str = "opensearch-11") -> Answered:
    shortlist = a_shortlist(a_profile(), spans=list(STAGES))
    shortlist.trace.index = index
    return Answered(shortlist=shortlist)


def test_the_stages_of_an_answer_are_subsegments_of_the_functions_segment(daemon, monkeypatch):
    monkeypatch.setattr(observers, "SystemClock", lambda: SimpleNamespace(elapsed_ms=lambda: 4_000.0))
    monkeypatch.setattr(observers.time, "time", lambda: 1_700_000_004.0)
    send_spans(answer())
    header, _, body = daemon.recv(65_535).decode().partition("\n")
    assert json.loads(header) == {"format": "json", "version": 1}
    whole = json.loads(body)
    stages = {each["name"]: each for each in whole.pop("subsegments")}
    assert len(whole.pop("id")) == 16
    assert whole == {
        "name": "total", "type": "subsegment", "trace_id": "1-0a1b2c3d-0a1b2c3d0a1b2c3d0a1b2c3d",
        "parent_id": "0a1b2c3d0a1b2c3e", "start_time": 1_700_000_001.0, "end_time": 1_700_000_003.65,
        "annotations": {"query_id": "q", "verdict": "match"},
    }  # fmt: skip
    assert stages.keys() == {
        "bedrock.embed", "bedrock.rerank", "opensearch.lexical", "opensearch.neural", "opensearch.fetch",
        "dynamodb.receipt", "measure",
    }  # fmt: skip
    assert {name for name, each in stages.items() if each.get("namespace") == "remote"} == stages.keys() - {"measure"}
    assert [name for name, each in stages.items() if each.get("fault")] == ["bedrock.rerank"]
    embed = stages["bedrock.embed"]
    assert (embed["start_time"], embed["end_time"]) == (1_700_000_001.0, 1_700_000_001.1)
    assert len({each["id"] for each in stages.values()}) == len(stages)


def test_an_index_in_files_is_named_as_such(daemon):
    send_spans(answer(index="files"))
    names = {each["name"] for each in json.loads(daemon.recv(65_535).partition(b"\n")[2])["subsegments"]}
    assert {"files.lexical", "files.neural"} <= names


@pytest.mark.parametrize("traced", ["", TRACED.replace("Sampled=1", "Sampled=0")])
def test_a_call_that_is_not_sampled_sends_nothing(daemon, monkeypatch, traced):
    monkeypatch.setenv("_X_AMZN_TRACE_ID", traced)
    send_spans(answer())
    daemon.setblocking(False)
    with pytest.raises(BlockingIOError):
        daemon.recv(1)
