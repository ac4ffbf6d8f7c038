"""The task `versions` of the state machine, over a Lambda that answers in pages."""

from collections.abc import Iterable, Mapping
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from tests.aws.deployment import Deployment
from tests.aws.state_machine import StateMachine
from tests.infra.synth import deployment

pytestmark = pytest.mark.server

SERVICE = botocore.session.get_session().get_service_model("lambda")
PAGE = 4


class Lambda:
    """One function with versions and aliases; requests are checked against the service's own description."""

    def __init__(self, numbers: Iterable[int], aliases: list[dict[str, Any]]) -> None:
        self.there, self.aliases = list(numbers), aliases

    def __call__(self, service: str, operation: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        faults = ParamValidator().validate(asked, SERVICE.operation_model(operation).input_shape)
        assert not faults.has_errors(), faults.generate_report()
        match operation:
            case "ListAliases":
                return {"Aliases": self.aliases}
            case "ListVersionsByFunction":
                start = int(asked.get("Marker", 0))
                every = [{"Version": each} for each in ["$LATEST", *map(str, self.there)]]
                more = {"NextMarker": str(start + PAGE)} if start + PAGE < len(every) else {}
                return {"Versions": every[start : start + PAGE], **more}
        self.there.remove(int(asked["Qualifier"]))
        return {}


@pytest.fixture(scope="module")
def deployed() -> Deployment:
    return deployment(size="production")


def deleted(deployed: Deployment, function: Lambda) -> list[int]:
    machine = deployed.one("AWS::StepFunctions::StateMachine", "Repair")
    output = StateMachine(deployed, machine, invoke=lambda *_: pytest.fail("invoked"), call=function).run(
        {"task": "versions"}
    )
    assert (output["task"], output["done"]) == ("versions", True)
    numbers: list[int] = output["deleted"]
    return numbers


@pytest.mark.parametrize(
    ("numbers", "live", "weights", "gone"),
    [
        (range(1, 13), 12, {"5": 0.1, "2": 0.1}, [1, 3, 4, 6, 7, 8, 9]),
        ([10, 9, 100, 1], 100, {}, [1]),
        ([1, 2, 3, 4], 1, {}, []),
        ([7], 7, {}, []),
        ([], 1, {}, []),
    ],
    ids=["pages", "by number", "all in use", "one", "none"],
)
def test_old_versions_that_nothing_points_to_are_deleted(deployed, numbers, live, weights, gone):
    routed = {"RoutingConfig": {"AdditionalVersionWeights": weights}} if weights else {}
    aliases = [
        {"Name": "live", "FunctionVersion": str(live), **routed},
        {"Name": "edge", "FunctionVersion": "$LATEST"},
    ]
    function = Lambda(numbers, aliases)
    assert deleted(deployed, function) == gone
    assert function.there == [number for number in numbers if number not in gone]
    assert deleted(deployed, function) == []


def test_a_trial_keeps_the_newest_version_and_the_one_that_answers():
    function = Lambda([1, 2, 3, 4], [{"Name": "live", "FunctionVersion": "2"}])
    assert deleted(deployment(), function) == [1, 3]
    assert function.there == [2, 4]
