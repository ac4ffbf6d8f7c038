"""Functions in the Lambda runtime."""

from pathlib import Path

import pytest

from tests.aws.deployment import Deployment
from tests.aws.runtime import Function, metrics
from tests.aws.tests.small_template import template

HANDLER = """
import json, os, sys, time
print("started")
def handle(event, context):
    print(json.dumps({"asked": event}))
    if event == "metrics":
        print(json.dumps({"_aws": {"Timestamp": 0, "CloudWatchMetrics": [
            {"Namespace": "mats", "Dimensions": [[]], "Metrics": [{"Name": "TotalMs"}]}]}, "TotalMs": 3}))
    if event == "raise": raise ValueError("on purpose")
    if event == "exit": os._exit(3)
    if event == "wait": time.sleep(60)
    return {"environment": dict(os.environ), "left_ms": context.get_remaining_time_in_millis()}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "handler.py").write_text(HANDLER)
    return tmp_path


def test_a_function_sees_the_template_s_environment_and_none_of_ours(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKED", "1")
    with Function(folder=folder, environment={"GIVEN": "x"}, around={"AROUND": "y"}, timeout_s=30) as function:
        first, second = function.invoke("a"), function.invoke("b")
    environment = first.response["environment"]
    assert (environment["GIVEN"], environment["AROUND"], environment["AWS_REGION"]) == ("x", "y", "us-east-1")
    assert "LEAKED" not in environment
    assert 0 < first.response["left_ms"] <= 30_000
    assert first.lines == ("started", '{"asked": "a"}')
    assert second.records == [{"asked": "b"}]
    assert first.cold_ms is not None
    assert second.cold_ms is None


@pytest.mark.parametrize(("event", "kind"), [("raise", "ValueError"), ("exit", "Runtime.ExitError")])
def test_an_error_is_told_and_the_next_event_is_answered(folder: Path, event: str, kind: str) -> None:
    with Function(folder=folder) as function:
        failed = function.invoke(event)
        assert failed.error is not None
        assert failed.error["errorType"] == kind
        assert function.invoke("a").error is None


def test_a_function_that_takes_too_long_is_killed(folder: Path) -> None:
    with Function(folder=folder, timeout_s=1) as function:
        failed = function.invoke("wait")
        assert failed.error is not None
        assert "Task timed out after 1.00 seconds" in failed.error["errorMessage"]
        assert function.invoke("a").cold_ms is not None


def test_a_function_that_cannot_be_imported_says_so_each_time(folder: Path) -> None:
    with Function(folder=folder, handler="absent.handle") as function:
        errors = [function.invoke("a").error for _ in range(2)]
    assert [error and error["errorType"] for error in errors] == ["Runtime.ImportModuleError"] * 2


def test_a_variable_that_lambda_sets_itself_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="AWS_REGION"):
        Function(folder=folder, environment={"AWS_REGION": "eu-west-1"})


def test_a_deployed_function_is_as_its_template_says(folder: Path) -> None:
    cut = template()
    properties = cut["Resources"]["Function"]["Properties"]
    properties["Environment"] = {"Variables": {"TABLE": {"Ref": "Registry"}}}
    deployment = Deployment(cut)
    with pytest.raises(ValueError, match="JSON"):
        Function.of_resource(deployment.one("AWS::Lambda::Function", "Function"), folder=folder)
    properties["LoggingConfig"] = {"LogFormat": "JSON"}
    with Function.of_resource(deployment.one("AWS::Lambda::Function", "Function"), folder=folder) as function:
        environment = function.invoke("a").response["environment"]
    assert (environment["TABLE"], environment["_HANDLER"], function.timeout_s) == ("Registry", "handler.handle", 30)


def test_metrics_are_read_from_what_a_function_writes(folder: Path) -> None:
    with Function(folder=folder) as function:
        assert function.invoke("metrics").metrics == {"TotalMs": [3]}
    assert metrics(["no JSON", '{"no": "metric"}']) == {}
