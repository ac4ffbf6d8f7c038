"""Alarms, the dashboard, and the queries over the decision log."""

import json
import logging
import re

import pytest

from infra import cost, vendor
from infra.alarms import HOPS, OWN, charged_metrics
from infra.queries import saved_queries
from mats.domain.prompts.usage import Usage
from mats.domain.search.query import Query
from mats.edge.maintenance import RESERVE_MS
from mats.edge.observers import LogObserver, answer_metrics, batch_metrics, feedback_metrics
from mats.local.log import record_fields
from mats.ports import Answered
from tests.aws import insights
from tests.aws.deployment import Deployment, Resource
from tests.builders import a_profile
from tests.infra.synth import CONTEXTS, deployment
from tests.unit.usecases.test_discover import discover_over, indexed

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def deployed() -> Deployment:
    """With an address in `alarm_to`."""
    return deployment(**CONTEXTS["jwt, mail"])


def alarms_of(deployed: Deployment) -> dict[str, Resource]:
    found = deployed.all("AWS::CloudWatch::Alarm")
    return {alarm.id.removeprefix("Observability")[:-8]: alarm for alarm in found}


@pytest.fixture(scope="module")
def alarms(deployed: Deployment) -> dict[str, Resource]:
    return alarms_of(deployed)


def test_every_alarm_names_a_section_of_the_runbook_and_every_section_has_an_alarm(alarms):
    text = (vendor.ROOT / "docs" / "runbook.md").read_text("utf-8")
    body = re.split(r"^## Alarms$", text, flags=re.MULTILINE)[1]
    sections = re.findall(r"^### (.+)$", re.split(r"^## ", body, flags=re.MULTILINE)[0], flags=re.MULTILINE)
    every = [*alarms.values(), *alarms_of(deployment(**CONTEXTS["production"])).values()]
    named = {re.search(r'What to do: docs/runbook\.md, "(.+)"\.$', alarm["AlarmDescription"])[1] for alarm in every}
    assert named == {*sections}


def test_one_dead_letter_at_any_hop_is_enough_for_an_alarm(deployed, alarms):
    queues = {queue["QueueName"] for queue in deployed.all("AWS::SQS::Queue") if queue["QueueName"].endswith("-dead")}
    watched = set()
    for hop in HOPS:
        alarm = alarms[f"DeadLetters{hop}"]
        assert (alarm["MetricName"], alarm["Threshold"]) == ("ApproximateNumberOfMessagesVisible", 0)
        assert (alarm["EvaluationPeriods"], alarm["ComparisonOperator"]) == (1, "GreaterThanThreshold")
        watched |= {dimension["Value"] for dimension in alarm["Dimensions"]}
    assert watched == queues


def test_every_alarm_tells_the_operator_when_it_begins_and_when_it_is_over(deployed, alarms):
    topic = deployed.one("AWS::SNS::Topic", "Alarms")
    assert all(alarm["AlarmActions"] == alarm["OKActions"] == [topic.ref] for alarm in alarms.values())
    assert deployed.one("AWS::SNS::Subscription")["Endpoint"] == CONTEXTS["jwt, mail"]["alarm_to"]
    statements = deployed.one("AWS::KMS::Key")["KeyPolicy"]["Statement"]
    allowed = [s["Action"] for s in statements if s["Principal"] == {"Service": "cloudwatch.amazonaws.com"}]
    assert [sorted(actions) for actions in allowed] == [["kms:Decrypt", "kms:GenerateDataKey*"]]
    assert "KmsMasterKeyId" in topic.raw


def test_a_topic_of_ones_own_hears_every_alarm_and_without_an_address_there_is_none():
    own = CONTEXTS["production, bigger"]
    alarms = alarms_of(deployment(**own)).values()
    assert {json.dumps(alarm["AlarmActions"]) for alarm in alarms} == {json.dumps([own["alarm_to"]])}
    silent = deployment()
    assert silent.all("AWS::SNS::Topic") == []
    assert not any(alarm.raw.get("AlarmActions") for alarm in alarms_of(silent).values())


def test_the_metrics_of_bill_and_dashboard_are_those_that_functions_write(deployed, alarms):
    written = {
        "discovery": answer_metrics(discover_over(indexed()).answer(Query(query="anything"))),
        "enrichment": batch_metrics([], Usage(usd=0.0)),
        "feedback": feedback_metrics([]),
    }
    for function, metrics in written.items():
        assert metrics.keys() <= {*OWN[function]}, function
    assert {name for name in OWN["discovery"] if name.startswith("Degraded")} <= written["discovery"].keys()
    assert {*OWN["enrichment"]} == written["enrichment"].keys() | {"ColdStart", "Unhealthy"}
    slow, function = alarms["DiscoverySlow"], deployed.one("AWS::Lambda::Function", "OnlineDiscoveryFunction")
    assert slow["Namespace"] == function["Environment"]["Variables"]["MATS_METRICS"]
    assert slow["Dimensions"] == [{"Name": "service", "Value": "discovery"}]


def test_the_bill_counts_what_the_stack_has(deployed, alarms):
    counted = [sum("MetricStat" in each for each in alarm.raw.get("Metrics", [])) or 1 for alarm in alarms.values()]
    assert sum(counted) == charged_metrics(usd_per_hour=5)
    discovery, maintenance = (
        deployed.one("AWS::Lambda::Function", name) for name in ("OnlineDiscoveryFunction", "MaintenanceFunction")
    )
    assert cost.ASSUMED["discovery_gb"] == discovery["MemorySize"] / 1024
    assert cost.ASSUMED["maintenance_gb"] == maintenance["MemorySize"] / 1024
    assert maintenance["Timeout"] - RESERVE_MS / 1000 == cost.ASSUMED["piece_s"]


@pytest.mark.parametrize("context", ["trial", "production, bigger"])
def test_the_dashboard_shows_metrics_and_queries(context: str):
    deployed = deployment(**CONTEXTS[context])
    body = json.dumps(deployed.one("AWS::CloudWatch::Dashboard").raw["DashboardBody"])
    assert len(body) < 500_000
    for metric in ("TotalMs", "RerankMs", "DegradedLlm", "VerdictNone", "Usd", "Waiting", "5XXError", "SearchLatency"):
        assert metric in body
    assert "Asked and not found" in body


@pytest.mark.parametrize("context", ["trial", "production, bigger"])
def test_the_queries_of_operators_are_saved_for_the_log_they_read(context: str):
    deployed = deployment(**CONTEXTS[context])
    expected = saved_queries(hashed="log_queries" in CONTEXTS[context])
    saved = {query["Name"].removeprefix("mats/"): query for query in deployed.all("AWS::Logs::QueryDefinition")}
    assert saved.keys() == expected.keys()
    for name, query in expected.items():
        assert saved[name]["QueryString"].split("\n| ") == list(query.lines)
        (group,) = saved[name]["LogGroupNames"]
        assert query.function in group.lower()


@pytest.mark.parametrize("hashed", [False, True])
def test_the_queries_read_fields_that_a_record_has(caplog, hashed: bool):
    index = indexed(a_profile(name="refund", description="give money back", provider="Acme!"))
    with caplog.at_level(logging.INFO, logger="mats"):
        LogObserver(spell_out=not hashed)(
            Answered(shortlist=discover_over(index).answer(Query(query="give money back")))
        )
    record = insights.flattened(record_fields(caplog.records[-1]))
    for query in (each for each in saved_queries(hashed=hashed).values() if each.function == "discovery"):
        (fields,) = [line for line in query.lines if line.startswith("fields ")]
        named = {field.split(" as ")[0] for field in fields.removeprefix("fields ").split(", ")}
        optional = {"cold_start", "degraded.0", "faults.0", "took_ms.encode", "took_ms.rerank", "took_ms.neural"}
        assert named - optional <= record.keys()
    assert record["candidates.0.id"].endswith("/refund")
