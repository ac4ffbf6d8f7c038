"""What observers write: metrics under the names that alarms and dashboards use, and one line per log record."""

import json
import logging
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import ChangeResult
from mats.domain.prompts.usage import Usage
from mats.domain.search.query import Query
from mats.domain.search.verdict import Verdict
from mats.edge.observers import LogObserver, MeasureObserver
from mats.local.log import JsonLines, LineFormatter, record_fields
from mats.ports import Answered, BatchProcessed, Measure, Observation, OperationFailed, RequestHandled
from tests.builders import a_profile, a_shortlist

NASTY = st.text(alphabet=st.characters(codec=None) | st.sampled_from("\n\r\x00\x1b\x7f\x85\u2028\u202e\u200b\ud800"))
HANDLED = RequestHandled(method="POST", route="/discover", status=200, took_ms=3.14159, request_id="r1")


def measures_of(observation: Observation) -> list[tuple[dict[str, float], dict[str, str]]]:
    """The values emitted, and their dimensions."""
    emitted = []
    MeasureObserver(lambda measures, dimensions=None: emitted.append((measures, dimensions or {})))(observation)
    return [({name: measure.value for name, measure in measures.items()}, dict(found)) for measures, found in emitted]


def answered(verdict: Verdict = Verdict.MATCH, **trace) -> Answered:
    return Answered(shortlist=a_shortlist(verdict=verdict, **trace))


@pytest.mark.parametrize(("observation", "expected"), [
    (answered(), {"Answers": 1, "Failed": 0, "Degraded": 0, "VerdictMatch": 1, "InputTokens": 0, "OutputTokens": 0}),
    (answered(Verdict.NONE), {"VerdictNone": 1, "VerdictMatch": None}),
    (answered(degraded=["llm", "neural"]), {"Degraded": 1, "DegradedLlm": 1, "DegradedNeural": 1, "DegradedBm25": 0}),
    (answered(took_ms={"total": 7.5, "rerank": 6}), {"TotalMs": 7.5, "RerankMs": 6}),
    (answered(usage=Usage(output_tokens=50, usd=0.25)), {"OutputTokens": 50, "Usd": 0.25}),
    (answered(usage=Usage(input_tokens=900, output_tokens=50, usd=None)), {"InputTokens": 900, "Usd": 0.01725}),
    (OperationFailed(operation="search", error=DependencyFailed("x")), {"Failed": 1, "Answers": None}),
])  # fmt: skip
def test_an_observation_has_its_metrics(observation, expected):
    (measures, dimensions), = measures_of(observation)  # fmt: skip
    assert {name: measures.get(name) for name in expected} == expected
    assert dimensions == {}


def test_times_have_their_unit():
    emitted = []
    MeasureObserver(lambda measures, dimensions=None: emitted.append(measures))(answered(took_ms={"total": 7.5}))
    assert emitted[0]["TotalMs"] == Measure(7.5, "Milliseconds")
    assert emitted[0]["Answers"] == Measure(1, "Count")


def test_a_batch_counts_every_outcome_including_zero():
    outcomes = {"a": ChangeResult.INDEXED, "b": ChangeResult.INDEXED, "c": ChangeResult.DEGRADED}
    (measures, _), = measures_of(BatchProcessed(outcomes=outcomes, usage=Usage(input_tokens=3, usd=None)))  # fmt: skip
    assert measures == {
        "Indexed": 2, "Waiting": 1, "Unchanged": 0, "Rejected": 0, "Held": 0, "Deleted": 0, "Refused": 0,
        "Superseded": 0, "Postponed": 0, "InputTokens": 3, "OutputTokens": 0, "Usd": 4.5e-05,
    }  # fmt: skip


def line(message: str, *arguments: object, formatter: logging.Formatter | None = None, **fields: object) -> str:
    record = logging.LogRecord("mats", logging.INFO, "here.py", 1, message, arguments, None)
    vars(record).update(fields)
    return (formatter or JsonLines()).format(record)


@given(NASTY)
def test_no_text_breaks_or_hides_in_a_line(text):
    for written in (line("x", event="x", query=text), line("%s", text)):
        assert written.isascii()
        assert written.isprintable()
        parsed = json.loads(written)
        assert text in (parsed.get("query"), parsed.get("message"))


def test_a_wide_record_has_its_fields_beside_the_names_of_the_functions_log():
    parsed = json.loads(line("spread", event="spread", sent=2))
    assert parsed.pop("timestamp").endswith("+00:00")
    assert parsed == {"level": "INFO", "logger": "mats", "message": "spread", "event": "spread", "sent": 2}
    written = line("x", formatter=LineFormatter(), event="x", a="\x7f\n")
    assert written.endswith('INFO mats {"event": "x", "a": "\\u007f\\n"}')


def test_an_error_has_its_type_and_its_stack():
    try:
        raise ValueError("bad\nvalue")
    except ValueError:
        record = logging.LogRecord("mats", logging.ERROR, "here.py", 1, "went wrong", (), sys.exc_info())
    parsed = json.loads(JsonLines().format(record))
    assert parsed["exception_name"] == "ValueError"
    assert parsed["exception"].endswith("ValueError: bad\nvalue")


def test_requests_are_logged_where_that_is_asked_for(caplog):
    with caplog.at_level("INFO", "mats"):
        LogObserver()(HANDLED)
        assert caplog.messages == []
        LogObserver(requests=True)(HANDLED)
    assert record_fields(caplog.records[0]) == {
        "event": "request", "request_id": "r1", "method": "POST", "route": "/discover", "status": 200, "ms": 3.14,
    }  # fmt: skip


def test_the_text_of_a_query_is_in_no_line_where_queries_are_hashed(caplog):
    shortlist = replace(a_shortlist(a_profile()), query=Query(query="my private wish"))
    with caplog.at_level("INFO", "mats"):
        LogObserver(spell_out=False, requests=True)(Answered(shortlist=shortlist, request_id="r1"))
    written = JsonLines().format(caplog.records[0])
    assert "private" not in written
    assert json.loads(written)["query_hash"]
