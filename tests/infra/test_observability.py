"""Alarms and dashboard, in a small stack of their own."""

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

cdk = pytest.importorskip("aws_cdk", reason="the CDK is not installed")

from aws_cdk import assertions  # noqa: E402 - only where there is a CDK
from aws_cdk import aws_apigateway as apigateway  # noqa: E402
from aws_cdk import aws_events as events  # noqa: E402
from aws_cdk import aws_iam as iam  # noqa: E402
from aws_cdk import aws_lambda as lambda_  # noqa: E402
from aws_cdk import aws_logs as logs  # noqa: E402
from aws_cdk import aws_opensearchservice as opensearch  # noqa: E402
from aws_cdk import aws_pipes as pipes  # noqa: E402
from aws_cdk import aws_sqs as sqs  # noqa: E402
from aws_cdk import aws_stepfunctions as sfn  # noqa: E402
from cdk_nag import AwsSolutionsChecks  # noqa: E402

from infra import cost  # noqa: E402
from infra.alarms import HOPS, OWN  # noqa: E402
from infra.alarms import PIPES as TABLES  # noqa: E402
from infra.constructs import dashboard, discovery_api, maintenance, maintenance_machine  # noqa: E402
from infra.constructs.observability import Observability  # noqa: E402
from infra.constructs.watched import Watched  # noqa: E402
from infra.context_check import parse  # noqa: E402
from infra.vendor import ROOT  # noqa: E402
from mats.domain.prompts.usage import Usage  # noqa: E402
from mats.domain.ranking.query import Query  # noqa: E402
from mats.edge.maintenance import RESERVE_MS  # noqa: E402
from mats.edge.observers import LogObserver, answer_metrics, batch_metrics, feedback_metrics  # noqa: E402
from mats.ports import Answered  # noqa: E402
from mats.settings import Settings  # noqa: E402
from tests.builders import a_profile  # noqa: E402
from tests.world import discover_over, indexed  # noqa: E402

STREAM = "arn:aws:dynamodb:eu-west-1:123456789012:table/{}/stream/2026-01-01T00:00:00.000"
MAINTENANCE = "arn:aws:states:eu-west-1:123456789012:stateMachine:mats-maintenance"


def observed(stack: Any, **context: str) -> Observability:
    """The construct over the smallest system that it can watch."""
    function = lambda_.Function(
        stack,
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_13,
        handler="index.handle",
        code=lambda_.Code.from_inline("def handle(event, context): ..."),
    )
    api = apigateway.RestApi(stack, "Api")
    api.root.add_method("GET", apigateway.LambdaIntegration(function))
    bus = events.EventBus(stack, "Bus")
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("pipes.amazonaws.com"))
    return Observability(
        stack,
        "Observability",
        context=parse(context),
        watched=Watched(
            namespace="mats",
            stage=api.deployment_stage,
            discovery=function,
            enrichment=function,
            feedback=function,
            learning=function,
            queue=sqs.Queue(stack, "Changes"),
            dead_letter_queues={hop: sqs.Queue(stack, f"Dead{hop}") for hop in HOPS},
            pipes={
                table: pipes.CfnPipe(
                    stack, f"Pipe{table}", role_arn=role.role_arn, source=STREAM.format(table), target=bus.event_bus_arn
                )
                for table in TABLES
            },
            domain=opensearch.Domain(stack, "Domain", version=opensearch.EngineVersion.OPENSEARCH_2_19),
            maintenance=sfn.StateMachine.from_state_machine_arn(stack, "Maintenance", MAINTENANCE),
            discovery_log=logs.LogGroup(stack, "Log"),
        ),
    )


@pytest.fixture(scope="module")
def template() -> Any:
    stack = cdk.Stack(cdk.App(), "Small")
    observed(stack, alarm_email="operator@example.com")
    return assertions.Template.from_stack(stack)


@pytest.fixture(scope="module")
def alarms(template) -> dict[str, dict]:
    found = template.find_resources("AWS::CloudWatch::Alarm")
    return {name.removeprefix("Observability")[:-8]: alarm["Properties"] for name, alarm in found.items()}


def sections(under: str) -> set[str]:
    """Titles of the sections of the runbook under a heading."""
    text = (ROOT / "docs" / "runbook.md").read_text("utf-8")
    body = re.split(rf"^## {re.escape(under)}$", text, flags=re.MULTILINE)[1]
    body = re.split(r"^## ", body, flags=re.MULTILINE)[0]
    return set(re.findall(r"^### (.+)$", body, flags=re.MULTILINE))


def test_every_alarm_names_a_section_of_the_runbook_and_every_section_has_an_alarm(alarms):
    named = {re.search(r'What to do: docs/runbook\.md, "(.+)"\.$', a["AlarmDescription"])[1] for a in alarms.values()}
    assert named == sections("Alarms")


def test_what_an_alarm_means_is_said_before_what_to_do(alarms):
    assert all(len(alarm["AlarmDescription"].split(" What to do: ")[0]) > 30 for alarm in alarms.values())


@pytest.mark.parametrize("hop", HOPS)
def test_one_dead_letter_anywhere_is_enough_for_an_alarm(alarms, hop):
    alarm = alarms[f"DeadLetters{hop}"]
    assert alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (0, 1)
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"


@pytest.mark.parametrize("table", TABLES)
def test_a_pipe_that_nobody_sees_running_counts_as_stopped(alarms, table):
    alarm = alarms[f"PipeStopped{table}"]
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["Statistic"], alarm["ComparisonOperator"], alarm["Threshold"]) == ("Minimum", "LessThanThreshold", 1)


def test_the_estimate_of_a_month_counts_these_alarms(alarms):
    def metrics(alarm: dict) -> int:
        return sum(1 for each in alarm.get("Metrics", [{"MetricStat": {}}]) if "MetricStat" in each)

    assert sum(map(metrics, alarms.values())) == cost.ALARM_METRICS


def test_other_alarms_are_silent_where_nothing_happens(alarms):
    assert {a["TreatMissingData"] for name, a in alarms.items() if "PipeStopped" not in name} == {"notBreaching"}


@pytest.mark.parametrize(
    "name",
    [
        "DiscoverySlow", "DiscoveryFailing", "DiscoveryDegraded", "ChangesWaiting", "EnrichmentFailing",
        "PipeFailingRegistry", "PipeFailingTrust", "IndexRed", "IndexYellow", "IndexStorageLow", "IndexMemoryPressure",
        "IndexWritesBlocked",
    ],
)  # fmt: skip
def test_there_is_an_alarm(alarms, name):
    assert name in alarms


def test_every_alarm_tells_the_operator_when_it_begins_and_when_it_is_over(template, alarms):
    topic = next(iter(template.find_resources("AWS::SNS::Topic")))
    for alarm in alarms.values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}]
    template.has_resource_properties(
        "AWS::SNS::Subscription", {"Protocol": "email", "Endpoint": "operator@example.com"}
    )


def test_cloudwatch_may_use_the_key_of_the_encrypted_topic(template):
    (key,) = template.find_resources("AWS::KMS::Key").values()
    statements = key["Properties"]["KeyPolicy"]["Statement"]
    allowed = [s for s in statements if s["Principal"] == {"Service": "cloudwatch.amazonaws.com"}]
    assert [sorted(s["Action"]) for s in allowed] == [["kms:Decrypt", "kms:GenerateDataKey*"]]
    (topic,) = template.find_resources("AWS::SNS::Topic").values()
    assert "KmsMasterKeyId" in topic["Properties"]


def test_without_an_address_there_are_alarms_but_no_topic():
    stack = cdk.Stack(cdk.App(), "Silent")
    observed(stack)
    silent = assertions.Template.from_stack(stack)
    silent.resource_count_is("AWS::SNS::Topic", 0)
    assert silent.find_resources("AWS::CloudWatch::Alarm")


def test_a_topic_of_ones_own_hears_every_alarm():
    stack = cdk.Stack(cdk.App(), "Own")
    topic = "arn:aws:sns:eu-west-1:123456789012:on-call"
    observed(stack, alarm_topic_arn=topic)
    found = assertions.Template.from_stack(stack).find_resources("AWS::CloudWatch::Alarm").values()
    assert {json.dumps(alarm["Properties"]["AlarmActions"]) for alarm in found} == {json.dumps([topic])}


def test_alarms_and_dashboard_read_metrics_in_the_namespace_that_the_functions_write(template, alarms):
    assert Settings(metrics="mats").to_env() == {"MATS_METRICS": "mats"}
    assert alarms["DiscoverySlow"]["Namespace"] == "mats"
    assert alarms["DiscoverySlow"]["Dimensions"] == [{"Name": "service", "Value": "discovery"}]


def machine(template) -> dict:
    """The watch of the Pipes in Amazon States Language, references as `${...}`."""
    (found,) = template.find_resources("AWS::StepFunctions::StateMachine").values()
    parts = found["Properties"]["DefinitionString"]["Fn::Join"][1]
    return json.loads("".join(part if isinstance(part, str) else "${" + part["Ref"] + "}" for part in parts))


def test_the_watch_describes_each_pipe_and_writes_the_metric_its_alarm_reads(template, alarms):
    branches = machine(template)["States"]["Each"]["Branches"]
    watched = {}
    for branch in branches:
        describe, measure = branch["States"][branch["StartAt"]], None
        measure = branch["States"][describe["Next"]]
        (written,) = measure["Arguments"]["MetricData"]
        watched[describe["Arguments"]["Name"]] = written
        assert measure["Arguments"]["Namespace"] == "mats"
        assert written["Value"] == "{% $states.input.CurrentState = 'RUNNING' ? 1 : 0 %}"
    assert sorted(watched) == ["${PipeOutcomes}", "${PipeRegistry}", "${PipeTrust}"]
    for table in TABLES:
        written, alarm = watched["${Pipe" + table + "}"], alarms[f"PipeStopped{table}"]
        assert (written["MetricName"], written["Dimensions"]) == (alarm["MetricName"], alarm["Dimensions"])


def test_the_calls_of_the_watch_are_calls_that_aws_knows():
    """Step Functions spells services and actions in camel case, parameters as the API does."""
    import botocore.session

    session = botocore.session.get_session()
    describe = session.get_service_model("pipes").operation_model("DescribePipe")
    assert "Name" in describe.input_shape.members
    assert "RUNNING" in describe.output_shape.members["CurrentState"].enum
    put = session.get_service_model("cloudwatch").operation_model("PutMetricData").input_shape
    assert {"Namespace", "MetricData"} <= set(put.members)
    assert {"MetricName", "Dimensions", "Value"} <= set(put.members["MetricData"].member.members)


def test_the_watch_may_describe_these_pipes_and_write_metrics_of_ours_only(template):
    roles = template.find_resources("AWS::IAM::Role")
    (role,) = (r["Properties"] for name, r in roles.items() if "PipeWatchRole" in name)
    describe, put = role["Policies"][0]["PolicyDocument"]["Statement"]
    assert describe["Action"] == "pipes:DescribePipe"
    assert describe["Resource"] == [{"Fn::GetAtt": [f"Pipe{table}", "Arn"]} for table in TABLES]
    assert put["Action"] == "cloudwatch:PutMetricData"
    assert put["Condition"] == {"StringEquals": {"cloudwatch:namespace": "mats"}}


def page(template) -> str:
    (found,) = template.find_resources("AWS::CloudWatch::Dashboard").values()
    return json.dumps(found["Properties"]["DashboardBody"])


@pytest.mark.parametrize(
    "metric",
    [
        "TotalMs", "EncodeMs", "LexicalMs", "NeuralMs", "RerankMs", "Degraded", "DegradedLlm", "VerdictMatch",
        "VerdictWeak", "VerdictNone", "InputTokens", "OutputTokens", "Usd", "Indexed", "Rejected", "Waiting",
        "ApproximateAgeOfOldestMessage", "5XXError", "SearchLatency",
    ],
)  # fmt: skip
def test_the_dashboard_shows(template, metric):
    assert metric in page(template)


def test_the_dashboard_fits_into_what_cloudwatch_takes(template):
    body = page(template)
    assert len(body) < 500_000
    assert "First places by provider" in body


@pytest.mark.parametrize(("verified", "exposed"), [("acme", ("acme", "true")), ("", ("Acme!", "false"))])
def test_exposure_reads_the_provider_out_of_the_record_of_a_decision(caplog, verified, exposed):
    """Logs Insights takes out what stands for each `*`; here a regular expression does the same."""
    index = indexed(a_profile(name="refund", description="give money back", provider="Acme!", verified=verified))
    with caplog.at_level(logging.INFO, logger="mats"):
        LogObserver()(Answered(shortlist=discover_over(index)(Query(query="give money back"))))
    pattern = re.escape(dashboard.FIRST_PLACES).replace(r"\*", "(.*?)")
    assert re.search(pattern, caplog.messages[-1]).groups()[-2:] == exposed


@pytest.mark.parametrize(("logged", "request_logged"), [("text", r"a \"stamp\", please"), ("hash", None)])
def test_demand_reads_request_verdict_and_nearest_out_of_the_record_of_a_decision(caplog, logged, request_logged):
    index = indexed(a_profile(name="refund", description="give money back"))
    with caplog.at_level(logging.INFO, logger="mats"):
        LogObserver(spell_out=logged == "text")(
            Answered(shortlist=discover_over(index)(Query(query='a "stamp", please')))
        )
    record = json.loads(caplog.messages[-1])
    pattern = re.escape(dashboard.ASKED[logged]).replace(r"\*", "(.*?)")
    found = re.search(pattern, caplog.messages[-1]).groups()
    assert found[0] == (request_logged or record["query_hash"])
    assert found[-1] == record["verdict"]


def test_demand_names_the_nearest_capability(caplog):
    index = indexed(a_profile(name="refund", description="give money back"))
    with caplog.at_level(logging.INFO, logger="mats"):
        LogObserver()(Answered(shortlist=discover_over(index)(Query(query="give money back"))))
    pattern = re.escape(dashboard.NEAREST).replace(r"\*", "(.*?)")
    assert re.search(pattern, caplog.messages[-1]).group(1).endswith("/refund")


@pytest.mark.parametrize("logged", ["text", "hash"])
def test_the_query_for_demand_is_saved_and_on_the_dashboard(logged):
    stack = cdk.Stack(cdk.App(), "Demand")
    observed(stack, log_queries=logged)
    template = assertions.Template.from_stack(stack)
    [saved] = template.find_resources("AWS::Logs::QueryDefinition").values()
    assert saved["Properties"]["Name"] == "mats/demand"
    assert dashboard.ASKED[logged] in saved["Properties"]["QueryString"]
    [page] = template.find_resources("AWS::CloudWatch::Dashboard").values()
    assert "Asked and not found" in json.dumps(page)


def test_nag_finds_nothing_in_what_observability_makes(tmp_path):
    app = cdk.App(outdir=str(tmp_path))
    observed(cdk.Stack(app, "Nagged"), alarm_email="operator@example.com")
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with pytest.raises(RuntimeError, match="validation-report"):  # for the rest of the small system
        app.synth()
    found = set(_values(json.loads((tmp_path / "validation-report.json").read_text("utf-8")), "constructPath"))
    assert found
    assert [path for path in found if "/Observability/" in path] == []


def _values(report: Any, key: str) -> Iterator[str]:
    inner = report.values() if isinstance(report, dict) else report if isinstance(report, list) else ()
    if isinstance(report, dict) and key in report:
        yield report[key]
    for each in inner:
        yield from _values(each, key)


def test_the_metrics_of_bill_and_dashboard_are_those_that_functions_write():
    written = {
        "discovery": answer_metrics(discover_over(indexed())(Query(query="anything"))),
        "enrichment": batch_metrics([], Usage(usd=0.0)),
        "feedback": feedback_metrics([]),
    }
    for function, metrics in written.items():
        assert metrics.keys() <= {*OWN[function]}, function
    assert {name for name in OWN["discovery"] if name.startswith("Degraded")} <= written["discovery"].keys()
    assert {*OWN["enrichment"]} == written["enrichment"].keys()


def test_memory_and_kept_versions_are_those_of_the_stack():
    assert cost.ASSUMED.discovery_gb == discovery_api._MEMORY_MB / 1024
    assert cost.ASSUMED.maintenance_gb == maintenance.MEMORY_MB / 1024
    assert cost.PIECE_S == maintenance.TIMEOUT_S - RESERVE_MS / 1000
    assert cost.ASSUMED.kept_versions == maintenance_machine.KEPT_VERSIONS
