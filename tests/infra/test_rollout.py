"""A bad version of discovery is turned back early: the template's deployment and alarms, in simulated time."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from mats.domain.errors import DependencyFailed
from mats.edge.observers import SLOW_MS, MeasureObserver
from mats.ports import Answered, Observation, OperationFailed
from tests.aws.deployment import Deployment, Resource
from tests.builders import a_shortlist
from tests.infra.synth import CONTEXTS, deployment, templates

pytestmark = pytest.mark.server

VERSION, ALIAS = "7", "AWS::Lambda::Alias"
BAD: dict[str, Observation | None] = {
    "slow": Answered(shortlist=a_shortlist(took_ms={"total": SLOW_MS + 1})),
    "degraded": Answered(shortlist=a_shortlist(degraded=["neural"], took_ms={"total": 900})),
    "503": OperationFailed(operation="search", error=DependencyFailed("the domain does not answer")),
    "crash": None,
}
GOOD = Answered(shortlist=a_shortlist(took_ms={"total": 900}))
DELAY_S = 120  # Until a metric can be seen, and until CodeDeploy has seen the alarm
ROLLOUTS = ["production", "global inference, words only, linear"]


@pytest.fixture(scope="module", params=ROLLOUTS)
def rollout(request: pytest.FixtureRequest) -> Deployment:
    return deployment(**CONTEXTS[request.param])


def brakes(deployed: Deployment) -> list[Resource]:
    named = deployed.one("AWS::CodeDeploy::DeploymentGroup").raw["AlarmConfiguration"]["Alarms"]
    return [alarm for alarm in deployed.all("AWS::CloudWatch::Alarm") if {"Name": {"Ref": alarm.id}} in named]


def share_at(deployed: Deployment, second: float) -> int:
    """The percentage of calls that the new version has."""
    config = deployed.one("AWS::CodeDeploy::DeploymentGroup")["DeploymentConfigName"]
    step, minutes = map(
        int, re.fullmatch(r"CodeDeployDefault\.LambdaLinear(\d+)Percent\D*(\d+)Minutes", config).groups()
    )
    return min(100, step * (1 + int(second // (60 * minutes))))


def measured(seen: Observation | None) -> dict[str, float]:
    """What a call of the new version adds to the metrics of its version."""
    emitted: list[Any] = []
    if seen is None:
        return {"Errors": 1}
    MeasureObserver(lambda measures, dimensions=None: emitted.append((measures, dimensions)), VERSION)(seen)
    return {"Errors": 0} | {n: m.value for ms, by in emitted if by == {"version": VERSION} for n, m in ms.items()}


def turned_back_at(alarm: Resource, value: float | None, *, first_s: int, every_s: int) -> float | None:
    """The second at which the alarm ends the deployment, whose calls come at a steady rate from the first on."""
    datapoints, needed = [], alarm["DatapointsToAlarm"]
    assert (alarm["ComparisonOperator"], alarm["TreatMissingData"]) == ("GreaterThanThreshold", "notBreaching")
    for end in range(60, 3_600, 60):
        calls = sum(call >= end - 60 for call in range(first_s, end, every_s))
        total = (value or 0) * calls
        breach = calls and (total if alarm["Statistic"] == "Sum" else total / calls) > alarm["Threshold"]
        datapoints.append(bool(breach))
        if sum(datapoints[-alarm["EvaluationPeriods"] :]) >= needed:
            return end + DELAY_S
    return None


def ends(deployed: Deployment, seen: Observation | None) -> Iterator[tuple[int, float | None]]:
    """For each start of the deployment within a minute: its second, and when an alarm ends it."""
    values = measured(seen)
    for start_s in range(0, 60, 5):
        for every_s in (1, 30):
            found = [
                turned_back_at(alarm, values.get(alarm["MetricName"]), first_s=start_s, every_s=every_s)
                for alarm in brakes(deployed)
            ]
            yield start_s, min((at for at in found if at is not None), default=None)


@pytest.mark.parametrize("kind", BAD)
def test_a_version_that_is_bad_from_the_first_second_is_turned_back_before_it_has_more_than_three_tenths(
    rollout: Deployment, kind: str
):
    for start_s, at in ends(rollout, BAD[kind]):
        assert at is not None
        assert share_at(rollout, at - start_s) < 30


def test_a_good_version_takes_over(rollout: Deployment):
    assert {at for _, at in ends(rollout, GOOD)} == {None}


@pytest.mark.parametrize("context", ROLLOUTS)
def test_an_alarm_is_of_one_version_and_there_before_calls_move(context: str):
    rollout = deployment(**CONTEXTS[context])
    assert len(brakes(rollout)) == 2
    for alarm in brakes(rollout):
        assert alarm["Period"] == 60
        assert "CurrentVersion" in str(alarm.raw["AlarmName"])
        assert "CurrentVersion" in str(alarm.raw["Dimensions"])
    group = rollout.one("AWS::CodeDeploy::DeploymentGroup")
    (alias,) = (one for one in templates(**CONTEXTS[context])["mats"]["Resources"].values() if one["Type"] == ALIAS)
    assert group.id in alias["DependsOn"]
    assert alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
    assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]


def test_without_steps_nothing_moves_back_and_no_alarm_waits():
    assert deployment().all("AWS::CodeDeploy::DeploymentGroup") == []
    assert not [alarm for alarm in deployment().all("AWS::CloudWatch::Alarm") if "NewVersion" in alarm.id]


def test_a_version_of_a_failed_deployment_goes_and_one_that_was_live_stays():
    versions = [one for one in templates()["mats"]["Resources"].values() if one["Type"] == "AWS::Lambda::Version"]
    assert [version["DeletionPolicy"] for version in versions] == ["RetainExceptOnCreate"]
