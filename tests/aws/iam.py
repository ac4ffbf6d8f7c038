"""Whether policy statements of a template allow a call, by IAM's rules for identity policies."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from tests.aws.deployment import Deployment, Resource, texts

Statement = Mapping[str, Any]
Context = Mapping[str, str | tuple[str, ...]]  # Condition keys of a call; one with several values has a tuple

# What AWS's own policies allow, as far as functions of ours have them.
_LOGS = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
_INTERFACES = [
    "ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
]  # fmt: skip
_MANAGED = {
    "service-role/AWSLambdaBasicExecutionRole": _LOGS,
    "service-role/AWSLambdaVPCAccessExecutionRole": [*_LOGS, *_INTERFACES],
}


class CannotDecide(Exception):
    """A statement says something whose meaning is not implemented here; guessing would be worse."""


def statements(deployment: Deployment, role: Resource) -> list[Statement]:
    """All statements of the role: its own, those of policies attached to it, those of AWS's managed policies."""
    documents = [policy["PolicyDocument"] for policy in role.get("Policies", [])]
    for policy in [*deployment.all("AWS::IAM::Policy"), *deployment.all("AWS::IAM::ManagedPolicy")]:
        if role.ref in policy.get("Roles", []):
            documents.append(policy["PolicyDocument"])
    found: list[Statement] = [statement for document in documents for statement in _listed(document["Statement"])]
    for arn in role.get("ManagedPolicyArns", []):
        name = arn.partition(":policy/")[2]
        if name not in _MANAGED:
            raise CannotDecide(f"what {arn} allows")
        found.append({"Effect": "Allow", "Action": _MANAGED[name], "Resource": "*"})
    return found


def role_of(deployment: Deployment, function: Resource) -> Resource:
    """The role that a function, or anything else with a role, runs under."""
    return deployment.at(function["Role"] if "Role" in function.raw else function["RoleArn"])


def allowed(statements: Iterable[Statement], action: str, resource: str, context: Context | None = None) -> bool:
    """Whether some statement allows it and none denies it. `context` has the condition keys of the call.

    Raises:
        CannotDecide: a statement about this action and resource that is not understood.
    """
    decided = False
    for statement in statements:
        for unknown in ("NotAction", "NotResource", "NotPrincipal"):
            if unknown in statement:
                raise CannotDecide(f"{unknown} in {dict(statement)}")
        if not _any(statement["Action"], action, ignore_case=True) or not _any(statement["Resource"], resource):
            continue
        if not _holds(statement.get("Condition", {}), context or {}):
            continue
        if statement["Effect"] == "Deny":
            return False
        decided = True
    return decided


def refused(statements: Iterable[Statement], calls: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The calls, as (action, resource), that the statements do not allow; each once."""
    known = list(statements)
    return [call for call in dict.fromkeys(calls) if not allowed(known, *call)]


def _holds(conditions: Mapping[str, Mapping[str, Any]], context: Context) -> bool:
    """Whether all conditions hold; an operator or a key that is not known here cannot be decided."""
    for operator, keys in conditions.items():
        if operator == "Null":
            if any((key in context) is (str(wanted) == "true") for key, wanted in keys.items()):
                return False
            continue
        every = not operator.startswith("ForAnyValue:")
        operator = operator.removeprefix("ForAllValues:").removeprefix("ForAnyValue:")  # noqa: PLW2901 - its test
        if operator not in {"StringEquals", "StringLike", "ArnEquals", "ArnLike", "Bool"}:
            raise CannotDecide(f"the condition {operator}")
        for key, wanted in keys.items():
            if key not in context:
                raise CannotDecide(f"the condition key {key}: say in `context` what it is")
            exact = operator in {"StringEquals", "Bool"}
            held = [value in texts(wanted) if exact else _any(wanted, value) for value in texts(context[key])]
            if not (all(held) if every else any(held)):
                return False
    return True


def _any(patterns: str | list[str], value: str, *, ignore_case: bool = False) -> bool:
    return any(_pattern(pattern, ignore_case).fullmatch(value) for pattern in texts(patterns))


@cache
def _pattern(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """`*` is any text, `?` any character; nothing else is special."""
    parts = (".*" if part == "*" else "." if part == "?" else re.escape(part) for part in re.split(r"([*?])", pattern))
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _listed(value: Any) -> list[Statement]:
    return value if isinstance(value, list) else [value]
