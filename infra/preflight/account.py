"""An account in a region: who calls, what the CDK and OpenSearch need there, and which names are taken."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

from boto3.session import Session
from botocore.exceptions import ClientError

from infra.preflight.plan import PhysicalName, Plan
from infra.preflight.results import CheckResult, ok, problem
from mats.adapters import aws

T = TypeVar("T")

_OPENSEARCH_ROLE = "AWSServiceRoleForAmazonOpenSearchService"
_MISSING = ("ResourceNotFoundException", "ParameterNotFound", "NoSuchEntity", "ValidationError")
_STUCK = {
    "ROLLBACK_COMPLETE": "delete the stack, which holds nothing, and deploy again",
    "ROLLBACK_FAILED": "delete the stack, which holds nothing, and deploy again",
    "DELETE_FAILED": "see its events for what could not be deleted, and delete it again",
    "UPDATE_ROLLBACK_FAILED": "see its events, then `aws cloudformation continue-update-rollback`",
}


@dataclass(frozen=True)
class Account:
    """The account of a session in a region."""

    session: Session
    region: str

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Account and ARN of the caller.

        Raises:
            NotPermitted: there are no valid credentials.
        """
        said: Mapping[str, str] = self.ask("AWS", lambda: self.client("sts").get_caller_identity())
        return said

    def client(self, service: str) -> Any:
        """A client of a service in the region, made once."""
        return _client(self.session, service, self.region)

    def ask(self, what: str, operation: Callable[[], T]) -> T:
        """The response of a call.

        Raises:
            DependencyFailed: there is none; NotPermitted if the caller lacks a right.
        """
        return aws.call(what, operation)

    def ask_for(self, what: str, operation: Callable[[], T]) -> T | None:
        """The same; None where the service says that there is no such thing."""
        try:
            return aws.call(what, operation, answers=_MISSING)
        except ClientError:
            return None


@cache
def _client(session: Session, service: str, region: str) -> Any:
    return aws.client(service, region=region, timeout_s=30, attempts=3, connections=1, session=session)


def check_bootstrap(account: Account, plan: Plan) -> Iterator[CheckResult]:
    """Whether the CDK's bootstrap stack is there and new enough."""
    name = f"/cdk-bootstrap/{plan.qualifier}/version"
    said = account.ask_for("SSM", lambda: account.client("ssm").get_parameter(Name=name))
    found, wanted = int(said["Parameter"]["Value"]) if said else 0, plan.bootstrap_version
    if not found:
        yield problem("bootstrap", f"{account.region} is not prepared for the CDK", "make bootstrap")
    elif found < wanted:
        yield problem(
            "bootstrap", f"the CDK's bootstrap stack has version {found}, and {wanted} is needed", "make bootstrap"
        )
    else:
        yield ok("bootstrap", f"the CDK's bootstrap stack has version {found}")


def check_opensearch_role(account: Account) -> Iterator[CheckResult]:
    """Whether the role is there that OpenSearch needs in a VPC."""
    role = account.ask_for("IAM", lambda: account.client("iam").get_role(RoleName=_OPENSEARCH_ROLE))
    if role:
        yield ok("opensearch-role", "the account has OpenSearch's service-linked role")
    else:
        yield problem(
            "opensearch-role",
            "network=vpc needs OpenSearch's service-linked role, which the account lacks",
            "aws iam create-service-linked-role --aws-service-name opensearchservice.amazonaws.com",
        )


def check_stacks(account: Account, plan: Plan) -> Iterator[CheckResult]:
    """Whether a stack is in a state in which it cannot be deployed."""
    states = {stack: _state(account, stack) for stack in plan.stacks}
    for stack, state in states.items():
        if state in _STUCK:
            yield problem("stacks", f"the stack {stack} is in {state}", _STUCK[state])
        elif state.endswith("IN_PROGRESS"):
            yield problem("stacks", f"the stack {stack} is in {state}", "wait until it is done")
    if not any(state in _STUCK or state.endswith("IN_PROGRESS") for state in states.values()):
        said = ", ".join(f"{stack} {state or 'new'}" for stack, state in states.items())
        yield ok("stacks", f"the stacks can be deployed: {said}")


def check_names(account: Account, plan: Plan) -> Iterator[CheckResult]:
    """Whether something has a name that a stack wants to give, and is not the stack's own."""
    taken = [each for each in plan.names if not _is_own(account, each) and _exists(account, each)]
    for each in taken:
        kind = each.type.removeprefix("AWS::").replace("::", " ")
        yield problem(
            "names",
            f"{kind} {each.name} exists and does not belong to the stack {each.stack}",
            f"choose another `name`, or delete it, or take it into the stack with `cdk import {each.stack}`",
        )
    if not taken:
        yield ok("names", f"{len(plan.names)} names are free or the stacks' own")


def check_api_log_role(account: Account, plan: Plan, choice: str) -> Iterator[CheckResult]:
    """Whether `api_log_role` fits the role that API Gateway has in the account.

    Args:
        account: Where to look.
        plan: Knows the stacks, which may have set the role themselves.
        choice: `set` or `keep`.
    """
    said: Any = account.ask("API Gateway", lambda: account.client("apigateway").get_account())
    role = str(said.get("cloudwatchRoleArn") or "")
    own = any(role.rpartition("/")[2] in _resources(account, stack) for stack in plan.stacks)
    if role and not own and choice == "set":
        yield problem(
            "api-log-role",
            f"API Gateway writes logs with {role}, which others have set for the whole account",
            "api_log_role=keep",
        )
    elif not role and choice == "keep":
        yield problem(
            "api-log-role", "API Gateway has no role in this region with which it could write logs", "api_log_role=set"
        )
    else:
        yield ok("api-log-role", "API Gateway's role for logs is as api_log_role has it")


def _state(account: Account, stack: str) -> str:
    """The state of a stack; empty if there is none."""
    said: Any = account.ask_for(
        "CloudFormation", lambda: account.client("cloudformation").describe_stacks(StackName=stack)
    )
    return str(said["Stacks"][0]["StackStatus"]) if said else ""


@cache
def _resources(account: Account, stack: str) -> frozenset[str]:
    """The physical ids of a stack's resources; none if there is no such stack."""
    pages = account.client("cloudformation").get_paginator("list_stack_resources")
    said = account.ask_for("CloudFormation", lambda: list(pages.paginate(StackName=stack)))
    return frozenset(
        each["PhysicalResourceId"]
        for page in said or ()
        for each in page["StackResourceSummaries"]
        if "PhysicalResourceId" in each
    )


def _is_own(account: Account, named: PhysicalName) -> bool:
    return bool({named.name, _identifier(account, named)} & _resources(account, named.stack))


def _exists(account: Account, named: PhysicalName) -> bool:
    request = {"TypeName": named.type, "Identifier": _identifier(account, named)}
    return bool(account.ask_for("CloudControl", lambda: account.client("cloudcontrol").get_resource(**request)))


def _identifier(account: Account, named: PhysicalName) -> str:
    """The identifier of a resource in CloudControl: its name, of a queue its address."""
    if named.type != "AWS::SQS::Queue":
        return named.name
    return f"https://sqs.{account.region}.amazonaws.com/{account.identity['Account']}/{named.name}"
