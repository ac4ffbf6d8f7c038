"""What operators see of the running service: its JSON log and its metrics."""

import json
import re
import signal

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.command import ask
from tests.conftest import ROOT
from tests.integration.conftest import Service, serving, tool, wait_until

ITEMS = [tool("refund", description="Give money back for a payment")]
QUERY = "give \x1b[31m\u202emoney back"


def samples(service: Service) -> dict[tuple, float]:
    reply = ask(service, "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(reply.text))
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_metrics_show_requests_answers_and_the_registry(mats):
    with serving(mats) as service:
        assert service.request("/discover", {"query": QUERY})[0] == 200
        assert service.request("/discover", {"query": 1})[0] == 422
        assert service.request("/no/such/path")[0] == 404
        seen = samples(service)
        assert seen["mats_requests_total", "POST", "/discover", "200"] == 1
        assert seen["mats_requests_total", "POST", "/discover", "422"] == 1
        assert seen["mats_requests_total", "GET", "other", "404"] == 1
        assert sum(value for (name, *_), value in seen.items() if name == "mats_answers_total") == 1
        assert seen["mats_answer_seconds_count",] == 1
        assert seen["mats_capabilities_findable",] == 1
        assert seen["mats_capabilities", "tool", "raw"] == 1
        request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        service.request("/mcp", request)
        wait_until(lambda: ("mats_requests_total", "POST", "/mcp", "200") in samples(service))
        assert service.request("/metrics", {})[0] == 405


PAGE, DASHBOARD = ROOT / "docs/how-to-observe.md", ROOT / "examples/grafana-dashboard.json"


def test_dashboard_and_page_name_what_the_service_has_and_the_page_all_of_it(mats):
    with serving(mats) as service:
        text = ask(service, "/metrics").text
    families = set(re.findall(r"^# TYPE (mats_\w+|process_\w+) ", text, re.MULTILINE))
    queries = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
    queried = re.findall(r"\b(?:mats|process)_[a-z_]+", " ".join([*queries, PAGE.read_text()]))
    bare = {re.sub(r"_(bucket|sum|count)$", "", name) for name in queried}
    assert bare - families == set()
    own = {name for name in families if name.startswith("mats_") and not name.endswith("_created")}
    assert own - set(re.findall(r"\bmats_[a-z_]+", PAGE.read_text())) == set()


@pytest.mark.parametrize("texts", ["text", "hash"])
def test_with_json_each_line_of_stderr_is_an_object(mats, texts):
    with serving(mats, settings={"MATS_LOG_FORMAT": "json", "MATS_LOG_QUERIES": texts}) as service:
        reply = ask(service, "/discover", {"query": QUERY}, method="POST", x_request_id="mine-1")
        assert reply.headers["x-request-id"] == "mine-1"
        service.process.send_signal(signal.SIGINT)
        assert service.process.stderr
        text = service.process.stderr.read().decode()
    assert not re.search(r"[^\x20-\x7e\n]", text)
    records = [json.loads(line) for line in text.splitlines()]
    (decision,) = (record for record in records if record.get("event") == "discovered")
    (request,) = (record for record in records if record.get("event") == "request")
    assert decision["request_id"] == request["request_id"] == "mine-1"
    assert (request["method"], request["route"], request["status"]) == ("POST", "/discover", 200)
    assert request["ms"] > 0
    assert decision.get("query") == (QUERY if texts == "text" else None)
    assert ("money back" in text) is (texts == "text")
    assert '"event": "discovered"' in (mats.home / "mats.log").read_text()
