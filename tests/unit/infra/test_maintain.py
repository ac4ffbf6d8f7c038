import json
from typing import Any

import pytest

from infra.maintain import TASKS, MaintenanceFailed, maintain
from mats.edge.maintenance import MaintenanceEvent

ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:mats-maintenance"


class Machines:
    """A client of Step Functions whose executions end at the third look."""

    def __init__(self, **ended: str) -> None:
        self.ended, self.looks, self.input = ended, 0, ""

    def start_execution(self, **asked: str) -> dict[str, Any]:
        assert asked["stateMachineArn"] == ARN
        self.input = asked["input"]
        return {"executionArn": f"{ARN}:one"}

    def describe_execution(self, **asked: str) -> dict[str, Any]:
        assert asked == {"executionArn": f"{ARN}:one"}
        self.looks += 1
        return {"status": "RUNNING"} if self.looks < 3 else self.ended


def test_a_task_is_waited_for_and_its_output_told():
    machines, waits = Machines(status="SUCCEEDED", output='{"done": true}'), []
    assert maintain(machines, ARN, {"task": "reconcile"}, sleep=waits.append) == {"done": True}
    assert (json.loads(machines.input), len(waits)) == ({"task": "reconcile"}, 2)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ({"status": "FAILED", "error": "DependencyFailed", "cause": "no"}, "DependencyFailed: no"),
        ({"status": "ABORTED"}, "ABORTED"),
    ],
)
def test_what_failed_is_said(ended: dict[str, str], said: str):
    with pytest.raises(MaintenanceFailed, match=said):
        maintain(Machines(**ended), ARN, {"task": "reindex"}, sleep=lambda _: None)


def test_every_other_task_is_the_maintenance_function_s():
    for task in set(TASKS) - {"versions"}:
        assert MaintenanceEvent(task=task).task == task
