"""The task `models` of the state machine: how long Bedrock offers the models, as a metric with an alarm."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.validate import ParamValidator

from tests.aws.state_machine import ExecutionFailed, StateMachine, started_by_schedule
from tests.infra.synth import deployment

pytestmark = pytest.mark.server

MICRO, LITE, TITAN = "amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0", "amazon.titan-embed-text-v2:0"


class Account:
    """Bedrock's answers by model, and the metrics written."""

    def __init__(self, lives: Mapping[str, Mapping[str, Any]]) -> None:
        self.lives, self.written = lives, list[Any]()

    def __call__(self, service: str, operation: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        model = botocore.session.get_session().get_service_model(service)
        named = model.operation_model(operation)
        given = {next(each for each in named.input_shape.members if each.lower() == name.lower()): value
                 for name, value in asked.items()}  # fmt: skip
        assert not ParamValidator().validate(given, named.input_shape).has_errors(), xform_name(operation)
        if operation == "PutMetricData":
            self.written.append(asked)
            return {}
        return {"ModelDetails": {"ModelLifecycle": self.lives.get(asked["ModelIdentifier"], {"Status": "ACTIVE"})}}


def in_days(days: float) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def days_left(account: Account, **context: str) -> tuple[dict[str, float], float]:
    deployed = deployment(**context)
    [(machine, given)] = [each for each in started_by_schedule(deployed) if each[1] == {"task": "models"}]
    output = StateMachine(deployed, machine, invoke=lambda *_: pytest.fail("invoked"), call=account).run(given)
    assert output["done"]
    [written] = account.written
    [metric] = written["MetricData"]
    alarm = next(
        each for each in deployed.all("AWS::CloudWatch::Alarm") if each.get("MetricName", "") == metric["MetricName"]
    )
    assert (alarm["Namespace"], alarm["Threshold"]) == (written["Namespace"], 60)
    assert alarm["Dimensions"] == metric["Dimensions"]
    assert alarm["ComparisonOperator"] == "LessThanThreshold"
    return {each["model"]: each["days"] for each in output["models"]}, metric["Value"]


@pytest.mark.parametrize(
    ("life", "days"),
    [
        ({"Status": "ACTIVE"}, 9999),
        ({"Status": "ACTIVE", "EndOfLifeTime": in_days(400.5)}, 400),
        ({"Status": "LEGACY", "EndOfLifeTime": in_days(59.5)}, 59),
        ({"Status": "LEGACY", "EndOfLifeTime": in_days(-2.5)}, -3),
        ({"Status": "LEGACY"}, 0),
    ],
)
def test_the_model_that_ends_first_counts(life: dict[str, str], days: int):
    by_model, least = days_left(Account({LITE: life}))
    assert by_model == {MICRO: 9999, LITE: days, TITAN: 9999}
    assert least == days


def test_every_model_that_may_be_invoked_is_asked_for_by_its_own_id():
    by_model, _ = days_left(
        Account({}), region="eu-central-1", switch_models="amazon.nova-pro-v1:0", writer_model="none"
    )
    assert by_model.keys() == {MICRO, TITAN, "amazon.nova-pro-v1:0"}


def test_a_model_that_bedrock_does_not_know_is_a_failure_and_not_a_long_life():
    class Unknown(Account):
        def __call__(self, service: str, operation: str, asked: Mapping[str, Any]) -> dict[str, Any]:
            raise ExecutionFailed(operation)

    with pytest.raises(ExecutionFailed):
        days_left(Unknown({}))


def test_without_models_nothing_is_asked():
    deployed = deployment(rerank_model="none", writer_model="none", encoder_model="none")
    assert {"task": "models"} not in [given for _, given in started_by_schedule(deployed)]
