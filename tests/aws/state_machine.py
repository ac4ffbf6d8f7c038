"""Step Functions' state machines as templates define them, as far as ours go, and the rules that start them."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.aws import iam
from tests.aws.deployment import Deployment, Misconfigured, Resource
from tests.aws.patterns import matches
from tests.aws.runtime import Invocation

Invoke = Callable[[str, Any], Invocation]
"""Invokes the function with this ARN."""
_EXPRESSION = re.compile(r"\{% \$states\.(input|result)((?:\.\w+)*)(?: (=|>) ('\w+'|\d+))? %\}")
_MOST = 5_000
"""States of an execution. The quota is 25,000 events of its history, of which a state has up to seven."""


class ExecutionFailed(Exception):
    """The execution has failed; the message has error and cause."""


@dataclass
class StateMachine:
    """One state machine; nothing waits, but `waited_s` counts."""

    deployment: Deployment
    resource: Resource
    invoke: Invoke
    visited: list[str] = field(default_factory=list)
    """The states of the last execution."""
    retried: int = 0
    waited_s: int = 0

    def __post_init__(self) -> None:
        self._definition = json.loads(self.resource["DefinitionString"])
        if (
            self._definition.get("QueryLanguage") != "JSONata"
            or self.resource.get("StateMachineType", "STANDARD") != "STANDARD"
        ):
            raise Misconfigured(f"{self.resource.id}: only standard state machines in JSONata are played here")

    def run(self, given: Any) -> Any:
        """Run an execution; its output.

        Raises:
            ExecutionFailed: a state failed more often than its retriers allow.
        """
        self.visited = []
        name, data = self._definition["StartAt"], given
        while len(self.visited) < _MOST:
            self.visited.append(name)
            state = self._definition["States"][name]
            match state["Type"]:
                case "Succeed":
                    return data
                case "Task":
                    data = self._task(state, data)
                case "Wait":
                    self.waited_s += evaluate(state["Seconds"], input=data)
                case "Choice":
                    held = (
                        each["Next"] for each in state["Choices"] if evaluate(each["Condition"], input=data) is True
                    )
                    name = next(held, state["Default"])
                    continue
                case other:
                    raise Misconfigured(f"a state of type {other} is not played here")
            if state.get("End"):
                return data
            name = state["Next"]
        raise ExecutionFailed(f"more than {_MOST} states: does it ever end? {data}")

    def _task(self, state: Mapping[str, Any], data: Any) -> Any:
        if not state["Resource"].endswith(":states:::lambda:invoke"):
            raise Misconfigured(f"{state['Resource']} is not played here")
        asked = evaluate(state["Arguments"], input=data)
        arn = asked["FunctionName"]
        allowed = iam.statements(self.deployment, iam.role_of(self.deployment, self.resource))
        if not iam.allowed(allowed, "lambda:InvokeFunction", arn):
            raise Misconfigured(f"{self.resource.id} may not invoke {arn}")
        tries = [0] * len(state["Retry"])
        while True:
            invocation = self.invoke(arn, json.loads(json.dumps(asked["Payload"])))
            if invocation.error is None:
                return evaluate(state["Output"], input=data, result={"Payload": invocation.response})
            kind = str(invocation.error.get("errorType"))
            met = [{kind, "States.ALL"} & set(retrier["ErrorEquals"]) for retrier in state["Retry"]]
            number = next((number for number, names in enumerate(met) if names), None)
            if number is None:
                raise ExecutionFailed(str(dict(invocation.error)))
            tries[number] += 1
            if tries[number] > state["Retry"][number]["MaxAttempts"]:
                raise ExecutionFailed(f"{kind}: {invocation.error.get('errorMessage')}")
            self.retried += 1


def evaluate(value: Any, **states: Any) -> Any:
    """A value of a definition, with its expressions replaced."""
    if isinstance(value, dict):
        return {key: evaluate(each, **states) for key, each in value.items()}
    if not isinstance(value, str) or not value.startswith("{%"):
        return value
    said = _EXPRESSION.fullmatch(value)
    if not said:
        raise Misconfigured(f"the expression {value} is not played here")
    found = states[said[1]]
    for name in said[2].split(".")[1:]:
        found = found.get(name)
    match said[3]:
        case "=":
            return found == said[4].strip("'")
        case ">":
            return found is not None and found > int(said[4])
    return found


def started_by_event(deployment: Deployment, event: Mapping[str, Any]) -> list[tuple[Resource, Any]]:
    """The state machines, with their input, that rules of the default bus start for an event of AWS's own."""
    rules = [rule for rule in deployment.all("AWS::Events::Rule") if "EventPattern" in rule.raw]
    own = [rule for rule in rules if "EventBusName" not in rule.raw]
    return [each for rule in own if matches(rule["EventPattern"], event) for each in _starts(deployment, rule)]


def started_by_schedule(deployment: Deployment) -> list[tuple[Resource, Any]]:
    """The state machines with an input of their own that schedules start."""
    rules = [rule for rule in deployment.all("AWS::Events::Rule") if "ScheduleExpression" in rule.raw]
    return [each for rule in rules for each in _starts(deployment, rule) if each[1] is not None]


def _starts(deployment: Deployment, rule: Resource) -> list[tuple[Resource, Any]]:
    found = []
    for target in rule.get("Targets", []):
        if ":states:" not in target["Arn"]:
            continue
        rights = iam.statements(deployment, deployment.at(target["RoleArn"]))
        if not iam.allowed(rights, "states:StartExecution", target["Arn"]):
            raise Misconfigured(f"{rule.id} may not start {target['Arn']}")
        found.append((deployment.at(target["Arn"]), json.loads(target["Input"]) if "Input" in target else None))
    return found
