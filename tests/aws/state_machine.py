"""Step Functions' state machines as templates define them, as far as ours go, and the rules that start them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.aws import iam
from tests.aws.deployment import Deployment, Misconfigured, Resource
from tests.aws.patterns import matches
from tests.aws.runtime import Invocation

Invoke = Callable[[str, Any], Invocation]  # Invokes the function with this ARN
Call = Callable[[str, str, Mapping[str, Any]], Any]
"""The response of a service to an operation, in the spelling of its API."""
_MOST = 5_000  # States of an execution. The quota is 25,000 events of its history, of which a state has up to seven.


_CONTEXT = {"Execution": {"Id": "arn:aws:states:eu-west-1:123456789012:execution:mats-maintenance:nightly"}}


class ExecutionFailed(Exception):
    """The execution has failed; the message has error and cause."""


@dataclass
class StateMachine:
    """One state machine; nothing waits, but `waited_s` counts."""

    deployment: Deployment
    resource: Resource
    invoke: Invoke
    call: Call | None = None  # Of the integrations of the SDK; none: they are not played
    visited: list[str] = field(default_factory=list)  # The states of the last execution
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
        return self._run(self._definition, given, {})

    def _run(self, states: Mapping[str, Any], given: Any, variables: dict[str, Any]) -> Any:
        """The output of the machine or of one iteration of a map, whose variables are its own."""
        name, data = states["StartAt"], given
        while len(self.visited) < _MOST:
            self.visited.append(name)
            state = states["States"][name]
            match state["Type"]:
                case "Succeed":
                    return data
                case "Task":
                    data = self._task(state, data, variables)
                case "Map":
                    items = evaluate(state["Items"], variables, input=data)
                    result = [self._run(state["ItemProcessor"], item, dict(variables)) for item in items]
                    data = evaluate(state["Output"], variables, input=data, result=result)
                case "Wait":
                    self.waited_s += evaluate(state["Seconds"], variables, input=data)
                case "Choice":
                    held = (
                        each["Next"]
                        for each in state["Choices"]
                        if evaluate(each["Condition"], variables, input=data) is True
                    )
                    name = next(held, state["Default"])
                    continue
                case other:
                    raise Misconfigured(f"a state of type {other} is not played here")
            if state.get("End"):
                return data
            name = state["Next"]
        raise ExecutionFailed(f"more than {_MOST} states: does it ever end? {data}")

    def _task(self, state: Mapping[str, Any], data: Any, variables: dict[str, Any]) -> Any:
        asked = evaluate(state["Arguments"], variables, input=data)
        tries = [0] * len(state["Retry"])
        while True:
            invocation = self._ask(state["Resource"].partition(":states:::")[2], asked)
            if invocation.error is None:
                response = invocation.response
                output = evaluate(state["Output"], variables, input=data, result=response)
                assigned = evaluate(state.get("Assign", {}), variables, input=data, result=response)
                variables.update(assigned)
                return output
            kind = str(invocation.error.get("errorType"))
            met = [{kind, "States.ALL"} & set(retrier["ErrorEquals"]) for retrier in state["Retry"]]
            number = next((number for number, names in enumerate(met) if names), None)
            if number is None:
                raise ExecutionFailed(str(dict(invocation.error)))
            tries[number] += 1
            if tries[number] > state["Retry"][number]["MaxAttempts"]:
                raise ExecutionFailed(f"{kind}: {invocation.error.get('errorMessage')}")
            self.retried += 1

    def _ask(self, integration: str, asked: Mapping[str, Any]) -> Invocation:
        if integration == "lambda:invoke":
            self._check("lambda:InvokeFunction", asked["FunctionName"])
            invocation = self.invoke(asked["FunctionName"], json.loads(json.dumps(asked["Payload"])))
            return replace(invocation, response={"Payload": invocation.response})
        kind, service, operation = integration.split(":")
        if kind != "aws-sdk" or self.call is None:
            raise Misconfigured(f"{integration} is not played here")
        if service != "lambda":
            operation = operation[0].upper() + operation[1:]
            model = f"arn:aws:bedrock:{self.deployment.region}::foundation-model/{asked.get('ModelIdentifier')}"
            self._check(f"{service}:{operation}", model if service == "bedrock" else "*", asked)
            return Invocation(response=self.call(service, operation, asked))
        function = next(
            each for each in self.deployment.all("AWS::Lambda::Function") if each.ref == asked["FunctionName"]
        )
        qualifier = f":{asked['Qualifier']}" if "Qualifier" in asked else ""
        operation = operation[0].upper() + operation[1:]
        self._check(f"lambda:{operation}", f"{function.arn}{qualifier}")
        return Invocation(response=self.call("lambda", operation, asked))

    def _check(self, action: str, arn: str, asked: Mapping[str, Any] | None = None) -> None:
        allowed = iam.statements(self.deployment, iam.role_of(self.deployment, self.resource))
        context = {"cloudwatch:namespace": asked["Namespace"]} if asked and "Namespace" in asked else {}
        if not iam.allowed(allowed, action, arn, context):
            raise Misconfigured(f"{self.resource.id} may not call {action} on {arn}")


def evaluate(value: Any, variables: Mapping[str, Any], **states: Any) -> Any:
    """A value of a definition, with its expressions replaced."""
    import jsonata

    if isinstance(value, dict):
        return {key: evaluate(each, variables, **states) for key, each in value.items()}
    if isinstance(value, list):
        return [evaluate(each, variables, **states) for each in value]
    if not isinstance(value, str) or not value.startswith("{%"):
        return value
    expression = jsonata.Jsonata(value.removeprefix("{%").removesuffix("%}"))
    frame = expression.create_frame()
    for name, bound in {**variables, "states": {"context": _CONTEXT, **states}}.items():
        frame.bind(name, bound)
    return expression.evaluate(None, frame)


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
