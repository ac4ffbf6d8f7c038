"""Whether the account can call the chosen models in a region: profile, quotas, and one small call of each."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from botocore.exceptions import ClientError

from infra.inference_profiles import InferenceProfile, invoked_as
from infra.preflight.account import Account
from infra.preflight.results import CheckResult, ok, problem
from mats.adapters import aws
from mats.domain.errors import DependencyFailed

_REFUSED = (
    "AccessDeniedException",
    "ResourceNotFoundException",
    "ThrottlingException",
    "ValidationException",
    "ServiceQuotaExceededException",
)
_PER_DAY = "Model invocation max tokens per day"


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a model, and the key of the context that chooses it."""

    name: str
    key: str


RERANKER = Role("reranker", "rerank_model")
WRITER = Role("writer", "writer_model")
ENCODER = Role("encoder", "encoder_model")


def check_model(account: Account, role: Role, model: str, profile: InferenceProfile | None) -> Iterator[CheckResult]:
    """The findings about one model; none for the model `none`."""
    if model == "none":
        return
    id, at = invoked_as(model, profile), account.region
    if profile:
        routed = _routed_to(account, id)
        if not routed:
            yield problem(
                role.name,
                f"there is no inference profile {id} in {at}",
                f"name another geography in inference_profile, or another model in {role.key}",
            )
            return
        if unknown := sorted(routed - {*profile.regions}) if profile.regions else []:
            named = f"{profile.geography}:{','.join(sorted(routed))}"
            yield problem(
                role.name,
                f"{id} also routes calls to {', '.join(unknown)}, where the policies do not allow them",
                f"inference_profile={named}",
            )
    yield from _quota_problems(account, model, through_profile=profile is not None)
    try:
        aws.call(id, _small_call(account, role, id), answers=_REFUSED)
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"]["Message"].rstrip(".")
        yield problem(
            role.name, f"{id} refuses calls in {at} ({code}: {message})", _remedy(account, role, model, code, message)
        )
    else:
        yield ok(role.name, f"{id} answers in {at}")


def _routed_to(account: Account, id: str) -> set[str]:
    """The regions that a profile routes to; none if there is no such profile."""
    bedrock = account.client("bedrock")
    try:
        said: Any = aws.call(
            f"inference profile {id}",
            lambda: bedrock.get_inference_profile(inferenceProfileIdentifier=id),
            answers=("ResourceNotFoundException", "ValidationException"),
        )
    except ClientError:
        return set()
    return {each["modelArn"].split(":")[3] or account.region for each in said["models"]}


def _small_call(account: Account, role: Role, id: str) -> Callable[[], object]:
    """The cheapest call of a model that shows that it can be called."""
    runtime = account.client("bedrock-runtime")
    if role is ENCODER:
        body = json.dumps({"inputText": "mats", "dimensions": 256, "normalize": True})
        return lambda: runtime.invoke_model(modelId=id, body=body)
    messages = [{"role": "user", "content": [{"text": "Reply with OK."}]}]
    return lambda: runtime.converse(modelId=id, messages=messages, inferenceConfig={"maxTokens": 1})


def _quota_problems(account: Account, model: str, *, through_profile: bool) -> Iterator[CheckResult]:
    """Quotas of 0 that this way of calling the model is under; new accounts have some."""
    try:
        named = _name(account, model)
        quotas = _quotas(account)
    except DependencyFailed as error:
        yield CheckResult("quotas", "unknown", f"not checked: {error}")
        return
    kind = "Cross-region model inference" if through_profile else "On-demand model inference"
    for quota in quotas:
        name = quota["QuotaName"]
        of_model = re.search(rf" for {re.escape(named)}( V\d+)?( \(|$)", name, re.IGNORECASE)
        if of_model and name.startswith((kind, _PER_DAY)) and quota["Value"] <= 0:
            yield problem(
                "quotas",
                f"the quota {name!r} is 0 in {account.region}",
                f"ask for more of {quota['QuotaCode']} in Service Quotas, or AWS Support if it cannot be adjusted",
            )


def _name(account: Account, model: str) -> str:
    """A model's name as quotas spell it, such as `Amazon Nova Micro`."""
    bedrock = account.client("bedrock")
    said: Any = account.ask(f"model {model}", lambda: bedrock.get_foundation_model(modelIdentifier=model))
    details = said["modelDetails"]
    return f"{details['providerName']} {details['modelName']}"


@cache
def _quotas(account: Account) -> list[dict[str, Any]]:
    pages = account.client("service-quotas").get_paginator("list_service_quotas")
    said = account.ask("Service Quotas", lambda: list(pages.paginate(ServiceCode="bedrock")))
    return [quota for page in said for quota in page["Quotas"]]


def _remedy(account: Account, role: Role, model: str, code: str, message: str) -> str:
    """The remedy for a call that was refused."""
    if code in ("ThrottlingException", "ServiceQuotaExceededException"):
        return "look at the quotas of the model in Service Quotas, and try again"
    if "on-demand throughput" in message:
        return "leave inference_profile out, or name a geography that has a profile of the model"
    available = _availability(account, model)
    elsewhere = f"choose another region, another {role.key}, or {role.key}=none"
    if available.get("regionAvailability") == "NOT_AVAILABLE":
        return f"the region does not offer it; {elsewhere}"
    if "NOT_AUTHORIZED" in available.values() or available.get("entitlementAvailability") == "NOT_AVAILABLE":
        return "the account has no access to it; ask for it under Model access in the Bedrock console"
    if code == "AccessDeniedException":
        return (
            "allow your own credentials bedrock:InvokeModel on it, in each region behind its profile, too, and look "
            "for a policy of the organisation that denies it"
        )
    return elsewhere


def _availability(account: Account, model: str) -> dict[str, str]:
    """The account's access to a model as Bedrock reports it; empty if it does not."""
    bedrock = account.client("bedrock")
    try:
        said: Any = account.ask(
            f"availability of {model}", lambda: bedrock.get_foundation_model_availability(modelId=model)
        )
    except DependencyFailed:
        return {}
    return {key: value for key, value in said.items() if isinstance(value, str)}
