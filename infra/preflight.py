"""Check that a deployment can work in an account: `make preflight`."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from boto3.session import Session
from botocore.exceptions import BotoCoreError, ClientError

from infra.context import COHERE_ENCODER, Context, ContextInvalid, parse, region_faults
from infra.inference_profiles import InferenceProfile, invoked_as
from infra.vendor import ROOT
from mats.adapters import aws
from mats.domain.errors import DependencyFailed
from mats.domain.text.words import clip

_MARKS = {"ok": "ok      ", "problem": "PROBLEM ", "unknown": "unknown "}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: `ok`, a `problem`, or `unknown` where the account did not let it look."""

    check: str  # Empty: that of the check that found it
    status: Literal["ok", "problem", "unknown"]
    message: str  # Of a problem: what is wrong, a colon, and what to do


def ok(message: str) -> CheckResult:
    return CheckResult("", "ok", message)


def problem(message: str, remedy: str, *, check: str = "") -> CheckResult:
    return CheckResult(check, "problem", f"{message}: {remedy}")


# --- the plan: what the deployment would make ---

_NAMES = {
    "AWS::CloudTrail::Trail": "TrailName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Events::EventBus": "Name",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::OpenSearchService::Domain": "DomainName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SQS::Queue": "QueueName",
}
"""The property that names a resource, where it is what CloudControl knows the resource by, too."""
_QUALIFIER = "@aws-cdk/core:bootstrapQualifier"


@dataclass(frozen=True, slots=True)
class PhysicalName:
    stack: str
    type: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A deployment as its templates have it."""

    stacks: tuple[str, ...]
    names: tuple[PhysicalName, ...]
    bootstrap_version: int
    qualifier: str = "hnb659fds"


def plan_of(context: Mapping[str, Any]) -> Plan:
    """The plan of a context, by synthesizing it without building the layers.

    Raises:
        ContextInvalid: with every fault of the context.
    """
    from aws_cdk import App  # noqa: PLC0415 - starts Node

    from infra.stacks import add_stacks  # noqa: PLC0415 - likewise

    with TemporaryDirectory() as folder:
        app = App(context={**context, "aws:cdk:bundling-stacks": []}, outdir=folder)
        add_stacks(app)
        app.synth()
        artifacts = json.loads(Path(folder, "manifest.json").read_text("utf-8"))["artifacts"]
        stacks = {
            name: each["properties"]
            for name, each in sorted(artifacts.items())
            if each["type"] == "aws:cloudformation:stack"
        }
        resources = {
            name: json.loads(Path(folder, each["templateFile"]).read_text("utf-8"))["Resources"].values()
            for name, each in stacks.items()
        }
    named = (
        PhysicalName(stack, each["Type"], each.get("Properties", {}).get(_NAMES.get(each["Type"], "")))
        for stack in stacks
        for each in resources[stack]
    )
    return Plan(
        stacks=tuple(stacks),
        names=tuple(each for each in named if isinstance(each.name, str)),
        bootstrap_version=max(each["requiresBootstrapStackVersion"] for each in stacks.values()),
        **({"qualifier": str(context[_QUALIFIER])} if _QUALIFIER in context else {}),
    )


# --- the account ---

_MISSING = ("ResourceNotFoundException", "ParameterNotFound", "NoSuchEntity", "ValidationError")


@dataclass(frozen=True)
class Account:
    session: Session
    region: str

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Account and ARN of the caller.

        Raises:
            NotPermitted: there are no valid credentials.
        """
        said: Mapping[str, str] = self.ask("AWS", "sts", "get_caller_identity")
        return said

    def ask(self, what: str, service: str, operation: str, *, missing: Sequence[str] = (), **request: Any) -> Any:
        """The response of a call, or all its pages; None if the service answers with one of the codes in `missing`.

        Raises:
            DependencyFailed: there is none; NotPermitted if the caller lacks a right.
        """
        client = _client(self.session, service, self.region)
        run = partial(getattr(client, operation), **request)
        if client.can_paginate(operation):
            run = partial(lambda pages: list(pages.paginate(**request)), client.get_paginator(operation))
        try:
            return aws.call(what, run, answers=missing)
        except ClientError:
            return None

    def find(self, what: str, service: str, operation: str, **request: Any) -> Any:
        """The same; None where the service says that there is no such thing."""
        return self.ask(what, service, operation, missing=_MISSING, **request)


@cache
def _client(session: Session, service: str, region: str) -> Any:
    return aws.client(service, region=region, timeout_s=30, attempts=3, connections=1, session=session)


def check_bootstrap(account: Account, plan: Plan) -> Iterator[CheckResult]:
    """Check that the CDK's bootstrap stack is there and new enough."""
    said = account.find("SSM", "ssm", "get_parameter", Name=f"/cdk-bootstrap/{plan.qualifier}/version")
    found, wanted = int(said["Parameter"]["Value"]) if said else 0, plan.bootstrap_version
    if not found:
        yield problem(f"{account.region} is not prepared for the CDK", "make bootstrap")
    elif found < wanted:
        yield problem(f"the CDK's bootstrap stack has version {found}, and {wanted} is needed", "make bootstrap")
    else:
        yield ok(f"the CDK's bootstrap stack has version {found}")


_UNRESERVED = 100  # Concurrent executions that Lambda keeps from being reserved


def check_concurrency(account: Account, context: Context) -> Iterator[CheckResult]:
    """Check that Lambda may run as many functions at once as the context lets calls in; a new account may run ten."""
    limit = account.ask("Lambda", "lambda", "get_account_settings")["AccountLimit"]["ConcurrentExecutions"]
    reserved, rate = context.discovery_concurrency, context.capacity.throttle_rate
    more = "ask for more of L-B99A9384 in Service Quotas"
    if reserved and limit < reserved + _UNRESERVED:
        message = f"discovery_concurrency={reserved} leaves less than {_UNRESERVED} of the account's {limit}"
        yield problem(message, f"{more}, or lower it")
    elif limit < rate:
        message = f"Lambda runs {limit} functions at once, and calls take up to a second: {rate} a second do not fit"
        yield problem(message, f"{more}, or throttle_rate={limit}")
    else:
        yield ok(f"Lambda runs {limit} functions at once")


_LOG_POLICIES = 10  # Resource policies of CloudWatch Logs in a region


def check_log_policies(account: Account, plan: Plan) -> Iterator[CheckResult]:
    """Check that there is room for the policy with which OpenSearch writes its logs."""
    pages = account.ask("CloudWatch Logs", "logs", "describe_resource_policies")
    own = frozenset[str]().union(*(_resources(account, stack) for stack in plan.stacks))
    others = [
        each["policyName"] for page in pages for each in page["resourcePolicies"] if each["policyName"] not in own
    ]
    if len(others) >= _LOG_POLICIES:
        message = f"CloudWatch Logs has {len(others)} resource policies, and takes {_LOG_POLICIES} in a region"
        yield problem(message, f"merge or delete some of {', '.join(sorted(others))}")
    else:
        yield ok(f"{len(others)} of {_LOG_POLICIES} resource policies of CloudWatch Logs are others'")


def check_instance_types(account: Account, context: Context) -> Iterator[CheckResult]:
    """Check that OpenSearch offers the types of the nodes in the region."""
    chosen = {"instance_type": context.capacity.node, "master_type": context.capacity.master}
    missing = {key: type for key, type in chosen.items() if type and not _is_offered(account, context, type)}
    for key, type in missing.items():
        yield problem(f"OpenSearch does not offer {type} in {account.region}", f"choose another {key}")
    if not missing:
        yield ok(f"OpenSearch offers {' and '.join(filter(None, chosen.values()))}")


def _is_offered(account: Account, context: Context, type: str) -> bool:
    engine = f"OpenSearch_{context.engine_version}"
    said = account.ask(
        "OpenSearch", "opensearch", "list_instance_type_details", missing=("ValidationException",),
        EngineVersion=engine, InstanceType=type,
    )  # fmt: skip
    return any(each["InstanceType"] == type for each in said["InstanceTypeDetails"]) if said else False


_OPENSEARCH_ROLE = "AWSServiceRoleForAmazonOpenSearchService"


def check_opensearch_role(account: Account) -> Iterator[CheckResult]:
    """Check that the role is there that OpenSearch needs in a VPC."""
    if account.find("IAM", "iam", "get_role", RoleName=_OPENSEARCH_ROLE):
        yield ok("the account has OpenSearch's service-linked role")
    else:
        yield problem(
            "network=vpc needs OpenSearch's service-linked role, which the account lacks",
            "aws iam create-service-linked-role --aws-service-name opensearchservice.amazonaws.com",
        )


_EMPTY = "delete the stack, which holds nothing, and deploy again"
_STUCK = {
    "ROLLBACK_COMPLETE": _EMPTY,
    "ROLLBACK_FAILED": _EMPTY,
    "DELETE_FAILED": "see its events for what could not be deleted, and delete it again",
    "UPDATE_ROLLBACK_FAILED": "see its events, then `aws cloudformation continue-update-rollback`",
}
"""States in which a stack cannot be deployed, and the remedy."""


def check_stacks(account: Account, plan: Plan) -> Iterator[CheckResult]:
    """Find stacks in a state in which they cannot be deployed."""
    found = {
        stack: account.find("CloudFormation", "cloudformation", "describe_stacks", StackName=stack)
        for stack in plan.stacks
    }
    states = {stack: str(pages[0]["Stacks"][0]["StackStatus"]) if pages else "" for stack, pages in found.items()}
    busy = {state: "wait until it is done" for state in states.values() if state.endswith("IN_PROGRESS")}
    remedies = {**_STUCK, **busy}
    for stack, state in states.items():
        if state in remedies:
            yield problem(f"the stack {stack} is in {state}", remedies[state])
    if not remedies.keys() & states.values():
        said = ", ".join(f"{stack} {state or 'new'}" for stack, state in states.items())
        yield ok(f"the stacks can be deployed: {said}")


def check_names(account: Account, plan: Plan) -> Iterator[CheckResult]:
    """Find what has a name that a stack wants to give, and is not the stack's own."""
    taken = [each for each in plan.names if _is_taken(account, each)]
    for each in taken:
        kind = each.type.removeprefix("AWS::").replace("::", " ")
        yield problem(
            f"{kind} {each.name} exists and does not belong to the stack {each.stack}",
            f"choose another `name`, or delete it, or take it into the stack with `cdk import {each.stack}`",
        )
    if not taken:
        yield ok(f"{len(plan.names)} names are free or the stacks' own")


def _is_taken(account: Account, named: PhysicalName) -> bool:
    """True if a resource of this name exists outside its stack."""
    identifier = named.name  # in CloudControl; a queue's is its address
    if named.type == "AWS::SQS::Queue":
        identifier = f"https://sqs.{account.region}.amazonaws.com/{account.identity['Account']}/{named.name}"
    if {named.name, identifier} & _resources(account, named.stack):
        return False
    request = {"TypeName": named.type, "Identifier": identifier}
    return bool(account.find("CloudControl", "cloudcontrol", "get_resource", **request))


@cache
def _resources(account: Account, stack: str) -> frozenset[str]:
    """The physical ids of a stack's resources; none if there is no such stack."""
    pages = account.find("CloudFormation", "cloudformation", "list_stack_resources", StackName=stack)
    listed = (each for page in pages or () for each in page["StackResourceSummaries"])
    return frozenset(each["PhysicalResourceId"] for each in listed if "PhysicalResourceId" in each)


def check_api_log_role(account: Account, plan: Plan, choice: str) -> Iterator[CheckResult]:
    """Check that `api_log_role`, which is `set` or `keep`, fits the role that API Gateway has in the account."""
    role = str(account.ask("API Gateway", "apigateway", "get_account").get("cloudwatchRoleArn") or "")
    own = any(role.rpartition("/")[2] in _resources(account, stack) for stack in plan.stacks)
    if role and not own and choice == "set":
        yield problem(
            f"API Gateway writes logs with {role}, which others have set for the whole account", "api_log_role=keep"
        )
    elif not role and choice == "keep":
        yield problem("API Gateway has no role in this region with which it could write logs", "api_log_role=set")
    else:
        yield ok("API Gateway's role for logs is as api_log_role has it")


# --- the models ---

_REFUSED = (
    "AccessDeniedException",
    "ResourceNotFoundException",
    "ThrottlingException",
    "ValidationException",
    "ServiceQuotaExceededException",
)


def check_model(account: Account, check: str, model: str, profile: InferenceProfile | None) -> Iterator[CheckResult]:
    """The findings about the `reranker`, `writer` or `encoder`: profile, quotas, and one small call of it."""
    id, at = invoked_as(model, profile), account.region
    key = {"reranker": "rerank_model", "writer": "writer_model", "encoder": "encoder_model"}[check]
    if profile:
        said = account.ask(
            f"inference profile {id}",
            "bedrock",
            "get_inference_profile",
            missing=("ResourceNotFoundException", "ValidationException"),
            inferenceProfileIdentifier=id,
        )
        routed = {each["modelArn"].split(":")[3] or at for each in said["models"]} if said else set()
        if not routed:
            yield problem(
                f"there is no inference profile {id} in {at}",
                f"name another geography in inference_profile, or another model in {key}",
            )
            return
        if unknown := sorted(routed - {*profile.regions}) if profile.regions else []:
            yield problem(
                f"{id} also routes calls to {', '.join(unknown)}, where the policies do not allow them",
                f"inference_profile={profile.geography}:{','.join(sorted(routed))}",
            )
    yield from _account_problems(account, model, key, through_profile=profile is not None)
    try:
        aws.call(id, _small_call(account, check, id), answers=_REFUSED)
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"]["Message"].rstrip(".")
        remedy = _remedy(account, key, model, code, message)
        yield problem(f"{id} refuses calls in {at} ({code}: {message})", remedy)
    else:
        yield ok(f"{id} answers in {at}")


def _small_call(account: Account, check: str, id: str) -> Callable[[], object]:
    """The cheapest call of a model that shows that it can be called."""
    runtime = _client(account.session, "bedrock-runtime", account.region)
    if check == "encoder":
        cohere = {"texts": ["mats"], "input_type": "search_query", "embedding_types": ["float"]}
        body = cohere if id == COHERE_ENCODER else {"inputText": "mats", "dimensions": 256, "normalize": True}
        return partial(runtime.invoke_model, modelId=id, body=json.dumps(body))
    messages = [{"role": "user", "content": [{"text": "Reply with OK."}]}]
    return partial(runtime.converse, modelId=id, messages=messages, inferenceConfig={"maxTokens": 1})


def _account_problems(account: Account, model: str, key: str, *, through_profile: bool) -> Iterator[CheckResult]:
    """The end of a model's life, and quotas of 0 that this way of calling it is under; new accounts have some."""
    try:
        details = account.ask(f"model {model}", "bedrock", "get_foundation_model", modelIdentifier=model)[
            "modelDetails"
        ]
        pages = account.ask("Service Quotas", "service-quotas", "list_service_quotas", ServiceCode="bedrock")
    except DependencyFailed as error:
        yield CheckResult("quotas", "unknown", f"not checked: {error}")
        return
    if (lifecycle := details.get("modelLifecycle", {})).get("status") == "LEGACY":
        end = f", and ends on {lifecycle['endOfLifeTime']:%Y-%m-%d}" if "endOfLifeTime" in lifecycle else ""
        about = f"{model} is LEGACY, which new accounts cannot use{end}"
        yield problem(about, f"choose another {key}", check="lifecycle")
    named = re.escape(f"{details['providerName']} {details['modelName']}")
    kind = "Cross-region model inference" if through_profile else "On-demand model inference"
    for quota in (quota for page in pages for quota in page["Quotas"]):
        name = quota["QuotaName"]
        of_model = re.search(rf" for {named}( V\d+)?( \(|$)", name, re.IGNORECASE)
        if of_model and name.startswith((kind, "Model invocation max tokens per day")) and quota["Value"] <= 0:
            yield problem(
                f"the quota {name!r} is 0 in {account.region}",
                f"ask for more of {quota['QuotaCode']} in Service Quotas, or AWS Support if it cannot be adjusted",
                check="quotas",
            )


def _remedy(account: Account, key: str, model: str, code: str, message: str) -> str:
    if code in ("ThrottlingException", "ServiceQuotaExceededException"):
        return "look at the quotas of the model in Service Quotas, and try again"
    if "on-demand throughput" in message:
        return "leave inference_profile out, or name a geography that has a profile of the model"
    try:
        about = account.ask(f"availability of {model}", "bedrock", "get_foundation_model_availability", modelId=model)
    except DependencyFailed:
        about = {}
    elsewhere = f"choose another region, another {key}, or {key}=none"
    if about.get("regionAvailability") == "NOT_AVAILABLE":
        return f"the region does not offer it; {elsewhere}"
    if about.get("authorizationStatus") == "NOT_AUTHORIZED" or about.get("entitlementAvailability") == "NOT_AVAILABLE":
        return "the account has no access to it; ask for it under Model access in the Bedrock console"
    if code == "AccessDeniedException":
        return (
            "allow your own credentials bedrock:InvokeModel on it, in each region behind its profile, too, and look "
            "for a policy of the organisation that denies it"
        )
    return elsewhere


# --- the command ---


def findings(account: Account, context: Context, plan: Callable[[], Plan]) -> Iterator[CheckResult]:
    """Every finding; without credentials only that. A check that AWS does not answer is `unknown`; the others go on."""
    try:
        yield CheckResult("credentials", "ok", f"{account.identity['Arn']} in account {account.identity['Account']}")
    except DependencyFailed as error:
        yield CheckResult("credentials", "problem", str(error))
        return
    checks: dict[str, Callable[[], Iterable[CheckResult]]] = {}
    if faults := list(region_faults(context, account.region)):
        yield from (CheckResult("region", "problem", fault) for fault in faults)
    else:
        yield CheckResult("region", "ok", f"{account.region} has a way to invoke the models")
        models = {"reranker": context.rerank_model, "writer": context.writer_model}
        chosen = {check: (model, context.profile_of(model, account.region)) for check, model in models.items()}
        for check, (model, profile) in {**chosen, "encoder": (context.encoder_model, None)}.items():
            if model != "none":
                checks[check] = partial(check_model, account, check, model, profile)
    planned = plan()
    checks |= {
        "bootstrap": partial(check_bootstrap, account, planned),
        "stacks": partial(check_stacks, account, planned),
        "names": partial(check_names, account, planned),
        "api-log-role": partial(check_api_log_role, account, planned, context.api_log_role),
        "concurrency": partial(check_concurrency, account, context),
        "log-policies": partial(check_log_policies, account, planned),
        "instance-types": partial(check_instance_types, account, context),
    }
    if context.network == "vpc":
        checks["opensearch-role"] = partial(check_opensearch_role, account)
    for name, run in checks.items():
        try:
            for found in run():
                yield replace(found, check=found.check or name)
        except DependencyFailed as error:
            yield CheckResult(name, "unknown", clip(" ".join(f"not checked: {error}".split()), 300))


def main(arguments: Sequence[str] | None = None) -> None:
    """Check that a deployment can work in the account; exit code 1 for problems, 2 for invalid options."""
    options = argparse.ArgumentParser(prog="make preflight", description=main.__doc__)
    options.add_argument("--context", action="append", default=[], metavar="KEY=VALUE", help="as for the deployment")
    options.add_argument("--region", default="", help="default: AWS's own setting")
    options.add_argument("--profile", default="", help="of AWS's configuration; default: AWS's own setting")
    options.add_argument("--strict", action="store_true", help="unknown findings are problems, too, as in a pipeline")
    options.add_argument("--json", action="store_true", help="print the findings as JSON")
    given = options.parse_args(arguments)
    values = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]
    for each in given.context:
        key, equals, value = each.partition("=")
        if not equals:
            options.error(f"--context takes KEY=VALUE, not {each!r}")
        values[key] = value
    try:
        context, session = parse(values), Session(profile_name=given.profile or None)
    except (ContextInvalid, BotoCoreError) as error:
        options.error(str(error))
    environment = os.environ  # noqa: TID251 - AWS's variables, not ours
    of_cdk = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    region = given.region or of_cdk or session.region_name
    if not region:
        options.error("there is no region: give --region, or set AWS_REGION")
    found = list(findings(Account(session, region), context, partial(plan_of, values)))
    if given.json:
        said = {"region": region, "findings": [asdict(each) for each in found]}
        sys.stdout.write(f"{json.dumps(said, indent=2)}\n")
    else:
        sys.stdout.writelines(f"{_MARKS[each.status]}{each.check}: {each.message}\n" for each in found)
    red = {"problem", "unknown"} if given.strict else {"problem"}
    sys.exit(any(each.status in red for each in found))


if __name__ == "__main__":
    main()
