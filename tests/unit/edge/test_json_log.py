"""The log as JSON: one line per record, whatever is in it."""

import json
import logging
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mats.domain.ranking.query import Query
from mats.edge import log
from mats.edge.log import JsonFormatter, LogText
from mats.edge.observers import LogObserver
from mats.ports import Answered, RequestHandled
from tests.builders import a_profile, a_shortlist

NASTY = st.text(alphabet=st.characters(codec=None) | st.sampled_from("\n\r\x00\x1b\x7f\x85\u2028\u202e\u200b\ud800"))


def line(message: str, *arguments: object, **more) -> str:
    record = logging.LogRecord("mats", logging.INFO, "here.py", 1, message, arguments, None, **more)
    return JsonFormatter().format(record)


@given(NASTY)
def test_no_text_breaks_or_hides_in_a_line(text):
    for written in (line("%s", LogText({"event": "x", "query": text})), line("%s", text)):
        assert written.isascii()
        assert written.isprintable()
        parsed = json.loads(written)
        assert text in (parsed.get("query"), parsed.get("message"))


def test_a_wide_record_has_its_fields_beside_the_names_of_lambdas_log():
    parsed = json.loads(line("%s", LogText({"event": "spread", "sent": 2})))
    assert parsed.pop("timestamp").endswith("+00:00")
    assert parsed == {"level": "INFO", "logger": "mats", "event": "spread", "sent": 2}


def test_an_error_has_its_type_and_its_stack():
    try:
        raise ValueError("bad\nvalue")
    except ValueError as error:
        record = logging.LogRecord(
            "mats", logging.ERROR, "here.py", 1, "went wrong", (), (ValueError, error, error.__traceback__)
        )
    parsed = json.loads(JsonFormatter().format(record))
    assert (parsed["message"], parsed["errorType"], parsed["errorMessage"]) == (
        "went wrong",
        "ValueError",
        "bad\nvalue",
    )
    assert parsed["stackTrace"][0].startswith("Traceback")


def test_without_json_the_line_of_a_wide_record_is_the_same_as_before():
    assert str(LogText({"a": "\x7f\n"})) == log.log_line({"a": "\x7f\n"}) == '{"a": "\\u007f\\n"}'


HANDLED = RequestHandled(method="POST", route="/discover", status=200, began_ms=5, took_ms=3.14159, request_id="r1")


def test_requests_are_logged_where_that_is_asked_for(caplog):
    with caplog.at_level("INFO", "mats"):
        LogObserver()(HANDLED)
        assert caplog.messages == []
        LogObserver(requests=True)(HANDLED)
    assert json.loads(caplog.messages[0]) == {
        "event": "request", "request_id": "r1", "method": "POST", "route": "/discover", "status": 200, "ms": 3.14,
    }  # fmt: skip


def test_the_text_of_a_query_is_in_no_line_where_queries_are_hashed(caplog):
    shortlist = replace(a_shortlist(a_profile()), query=Query(query="my private wish"))
    with caplog.at_level("INFO", "mats"):
        LogObserver(spell_out=False, requests=True)(Answered(shortlist=shortlist, request_id="r1"))
    written = JsonFormatter().format(caplog.records[0])
    assert "private" not in written
    assert json.loads(written)["query_hash"]
