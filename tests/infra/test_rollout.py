"""A bad version is turned back early: the template's deployments and alarms, in simulated time."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import ChangeResult
from mats.domain.prompts.usage import Usage
from mats.edge.observers import SLOW_MS, MeasureObserver
from mats.ports import Answered, BatchDelayed, BatchProcessed, Observation, OperationFailed
from tests.aws.deployment import Deployment, Resource
from tests.builders import a_shortlist
from tests.infra.synth import CONTEXTS, deployment, templates

pytestmark = pytest.mark.server

VERSION, ALIAS = "7", "AWS::Lambda::Alias"


def batch(**outcomes: int) -> BatchProcessed:
    each = [ChangeResult(result) for result, count in outcomes.items() for _ in range(count)]
    return BatchProcessed(outcomes={f"a/{n}": result for n, result in enumerate(each)}, usage=Usage())


BAD: dict[str, tuple[str, Observation | None]] = {
    "slow": ("discovery", Answered(shortlist=a_shortlist(took_ms={"total": SLOW_MS + 1}))),
    "degraded": ("discovery", Answered(shortlist=a_shortlist(degraded=["neural"], took_ms={"total": 900}))),
    "503": ("discovery", OperationFailed(operation="search", error=DependencyFailed("the domain does not answer"))),
    "crash": ("discovery", None),
    "changes wait": ("enrichment", batch(degraded=6, indexed=4)),
    "a model refuses": ("enrichment", batch(refused=10)),
    "a bug, a store": ("enrichment", BatchDelayed(changes=1, error=KeyError("name"))),
    "crash offline": ("enrichment", None),
}
GOOD: dict[str, tuple[str, Observation]] = {
    "answer": ("discovery", Answered(shortlist=a_shortlist(took_ms={"total": 900}))),
    "batch": ("enrichment", batch(degraded=5, indexed=5)),
    "what owners wrote is wrong": ("enrichment", batch(rejected=10)),
    "nothing": ("enrichment", batch()),
}
DELAY_S = 120  # Until a metric can be seen, and until CodeDeploy has seen the alarm
GROUPS = {"discovery": "RolloutGroup", "enrichment": "RolloutOfflineGroup"}
ROLLOUTS = ["production", "global inference, words only, linear"]


@pytest.fixture(scope="module", params=ROLLOUTS)
def rollout(request: pytest.FixtureRequest) -> Deployment:
    return deployment(**CONTEXTS[request.param])


def group(deployed: Deployment, function: str) -> Resource:
    return deployed.one("AWS::CodeDeploy::DeploymentGroup", GROUPS[function])


def brakes(deployed: Deployment, function: str) -> list[Resource]:
    named = group(deployed, function).raw["AlarmConfiguration"]["Alarms"]
    return [alarm for alarm in deployed.all("AWS::CloudWatch::Alarm") if {"Name": {"Ref": alarm.id}} in named]


def share_at(deployed: Deployment, second: float) -> int:
    """The percentage of calls that the new version has."""
    (config,) = {each["DeploymentConfigName"] for each in deployed.all("AWS::CodeDeploy::DeploymentGroup")}
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


def ends(deployed: Deployment, function: str, seen: Observation | None) -> Iterator[tuple[int, float | None]]:
    """For each start of the deployment within a minute: its second, and when an alarm ends it."""
    values = measured(seen)
    for start_s in range(0, 60, 5):
        for every_s in (1, 30):
            found = [
                turned_back_at(alarm, values.get(alarm["MetricName"]), first_s=start_s, every_s=every_s)
                for alarm in brakes(deployed, function)
            ]
            yield start_s, min((at for at in found if at is not None), default=None)


@pytest.mark.parametrize("kind", BAD)
def test_a_version_that_is_bad_from_the_first_second_is_turned_back_before_it_has_more_than_three_tenths(
    rollout: Deployment, kind: str
):
    for start_s, at in ends(rollout, *BAD[kind]):
        assert at is not None
        assert share_at(rollout, at - start_s) < 30


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_version_takes_over(rollout: Deployment, kind: str):
    assert {at for _, at in ends(rollout, *GOOD[kind])} == {None}


@pytest.mark.parametrize("function", GROUPS)
@pytest.mark.parametrize("context", ROLLOUTS)
def test_an_alarm_is_of_one_version_and_there_before_calls_move(context: str, function: str):
    rollout = deployment(**CONTEXTS[context])
    assert len(brakes(rollout, function)) == 2
    for alarm in brakes(rollout, function):
        assert alarm["Period"] == 60
        assert "CurrentVersion" in str(alarm.raw["AlarmName"])
        assert function in str(alarm.raw["Dimensions"]).lower()
        assert "CurrentVersion" in str(alarm.raw["Dimensions"])
    stops = group(rollout, function)
    every = templates(**CONTEXTS[context])["mats"]["Resources"].values()
    (alias,) = (one for one in every if one["Type"] == ALIAS and stops.id in one["DependsOn"])
    assert function in str(alias["Properties"]["FunctionName"]).lower()
    assert alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
    assert "DEPLOYMENT_STOP_ON_ALARM" in stops["AutoRollbackConfiguration"]["Events"]


def test_without_steps_nothing_moves_back_and_no_alarm_waits():
    assert deployment().all("AWS::CodeDeploy::DeploymentGroup") == []
    assert not [alarm for alarm in deployment().all("AWS::CloudWatch::Alarm") if "NewVersion" in alarm.id]


def test_a_version_of_a_failed_deployment_goes_and_one_of_discovery_that_was_live_stays():
    versions = [one for one in templates()["mats"]["Resources"].items() if one[1]["Type"] == "AWS::Lambda::Version"]
    policies = {id.startswith("Online"): version.get("DeletionPolicy", "Delete") for id, version in versions}
    assert policies == {True: "RetainExceptOnCreate", False: "Delete"}


@pytest.mark.parametrize("context", CONTEXTS)
def test_changes_go_to_the_alias_of_enrichment_in_every_context(context: str):
    deployed = deployment(**CONTEXTS[context])
    (mapping,) = (
        each for each in deployed.all("AWS::Lambda::EventSourceMapping")
        if each["EventSourceArn"] == deployed.one("AWS::SQS::Queue", "PathChanges").arn
    )  # fmt: skip
    assert deployed.one(ALIAS, "Offline").ref.endswith(f":function:{mapping['FunctionName']}")
    assert mapping["FunctionName"].endswith(":live")
