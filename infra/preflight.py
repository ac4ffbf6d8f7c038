"""Check models and quotas of an account before a deployment: `make preflight`."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from boto3.session import Session
from botocore.exceptions import BotoCoreError, ClientError

from infra.context import COHERE_ENCODER, Context, ContextInvalid, parse, region_faults
from infra.inference_profiles import InferenceProfile, invoked_as
from infra.vendor import ROOT
from mats.adapters import aws
from mats.domain.errors import DependencyFailed

_REFUSED = (
    "AccessDeniedException", "ResourceNotFoundException", "ThrottlingException", "ValidationException",
    "ServiceQuotaExceededException",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`ok`, a `problem` with its remedy, or `unknown` where the account did not let it look."""

    check: str
    status: Literal["ok", "problem", "unknown"]
    message: str


@dataclass(frozen=True)
class Account:
    session: Session
    region: str

    def client(self, service: str) -> Any:
        return aws.client(service, region=self.region, timeout_s=30, attempts=3, connections=1, session=self.session)

    def ask(self, what: str, service: str, operation: str, *, missing: Sequence[str] = (), **request: Any) -> Any:
        """The response of a call, or all its pages; None if the service answers with one of the codes in `missing`.

        Raises DependencyFailed: there is none; NotPermitted if the caller lacks a right.
        """
        client = self.client(service)
        run = partial(getattr(client, operation), **request)
        if client.can_paginate(operation):
            run = partial(lambda pages: list(pages.paginate(**request)), client.get_paginator(operation))
        try:
            return aws.call(what, run, answers=missing)
        except ClientError:
            return None


Found = Iterator[tuple[str, str]]  # Of a problem: what is wrong, and what to do


def check_concurrency(account: Account, context: Context) -> Found:
    """Lambda may run as many functions at once as the context lets calls in; a new account may run ten."""
    limit = account.ask("Lambda", "lambda", "get_account_settings")["AccountLimit"]["ConcurrentExecutions"]
    rate = context.capacity.throttle_rate
    if limit < rate:
        message = f"Lambda runs {limit} functions at once, and calls take up to a second: {rate} a second do not fit"
        yield message, f"ask for more of L-B99A9384 in Service Quotas, or throttle_rate={limit}"


def check_model(account: Account, key: str, model: str, profile: InferenceProfile | None) -> Found:
    """The profile routes where the policies allow, and one small call of the model is answered."""
    id, at = invoked_as(model, profile), account.region
    if profile:
        said = account.ask(
            f"inference profile {id}", "bedrock", "get_inference_profile",
            missing=("ResourceNotFoundException", "ValidationException"), inferenceProfileIdentifier=id,
        )  # fmt: skip
        routed = {each["modelArn"].split(":")[3] or at for each in said["models"]} if said else set()
        if not routed:
            remedy = f"name another geography in inference_profile, or another model in {key}"
            yield f"there is no inference profile {id} in {at}", remedy
            return
        if unknown := sorted(routed - {*profile.regions}) if profile.regions else []:
            yield (
                f"{id} also routes calls to {', '.join(unknown)}, where the policies do not allow them",
                f"inference_profile={profile.geography}:{','.join(sorted(routed))}",
            )
    try:
        aws.call(id, _small_call(account, key, id), answers=_REFUSED)
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"]["Message"].rstrip(".")
        yield f"{id} refuses calls in {at} ({code}: {message})", _remedy(key, code, message)


def _small_call(account: Account, key: str, id: str) -> Callable[[], object]:
    """The cheapest call of a model that shows that it can be called."""
    runtime = account.client("bedrock-runtime")
    if key == "encoder_model":
        cohere = {"texts": ["mats"], "input_type": "search_query", "embedding_types": ["float"]}
        body = cohere if id == COHERE_ENCODER else {"inputText": "mats", "dimensions": 256, "normalize": True}
        return partial(runtime.invoke_model, modelId=id, body=json.dumps(body))
    messages = [{"role": "user", "content": [{"text": "Reply with OK."}]}]
    return partial(runtime.converse, modelId=id, messages=messages, inferenceConfig={"maxTokens": 1})


def _remedy(key: str, code: str, message: str) -> str:
    if code in ("ThrottlingException", "ServiceQuotaExceededException"):
        return "look at the quotas of the model in Service Quotas, and try again"
    if "on-demand throughput" in message:
        return "leave inference_profile out, or name a geography that has a profile of the model"
    if code == "AccessDeniedException":
        return (
            "allow your own credentials bedrock:InvokeModel on it, in each region behind its profile, too; ask for the "
            "model under Model access in the Bedrock console; look for a policy of the organisation that denies it"
        )
    return f"choose another region, another {key}, or {key}=none"


def check_quotas(account: Account, key: str, model: str, profile: InferenceProfile | None, *, per_minute: int) -> Found:
    """Bedrock offers the model to new accounts, and lets it be called as often as the API lets callers in."""
    said = account.ask(f"model {model}", "bedrock", "get_foundation_model", modelIdentifier=model)
    details, at = said["modelDetails"], account.region
    pages = account.ask("Service Quotas", "service-quotas", "list_service_quotas", ServiceCode="bedrock")
    if (lifecycle := details.get("modelLifecycle", {})).get("status") == "LEGACY":
        end = f", and ends on {lifecycle['endOfLifeTime']:%Y-%m-%d}" if "endOfLifeTime" in lifecycle else ""
        yield f"{model} is LEGACY, which new accounts cannot use{end}", f"choose another {key}"
    named = re.escape(f"{details['providerName']} {details['modelName']}")
    kind = f"{'Cross-region' if profile else 'On-demand'} model inference"
    for quota in (quota for page in pages for quota in page["Quotas"]):
        name, value = quota["QuotaName"], quota["Value"]
        of_model = re.search(rf" for {named}( V\d+)?( \(|$)", name, re.IGNORECASE)
        if not of_model or not name.startswith((kind, "Model invocation max tokens per day")):
            continue
        more = f"ask for more of {quota['QuotaCode']} in Service Quotas"
        if value <= 0:
            yield f"the quota {name!r} is 0 in {at}", f"{more}, or AWS Support if it cannot be adjusted"
        elif "requests per minute" in name and value < per_minute:
            yield (
                f"the quota {name!r} is {value:,.0f} in {at}, and {per_minute:,} calls a minute are let in",
                (f"{more}, or throttle_rate={max(1, int(value / 60))}"),
            )


def findings(account: Account, context: Context) -> Iterator[CheckResult]:
    """Every finding; without credentials only that. A check that AWS does not answer is `unknown`; the others go on."""
    try:
        who = account.ask("AWS", "sts", "get_caller_identity")
    except DependencyFailed as error:
        yield CheckResult("credentials", "problem", str(error))
        return
    yield CheckResult("credentials", "ok", f"{who['Arn']} in account {who['Account']}")
    checks: dict[str, Callable[[], Found]] = {"concurrency": partial(check_concurrency, account, context)}
    faults = list(region_faults(context, account.region))
    yield from (CheckResult("region", "problem", fault) for fault in faults)
    for key in ("rerank_model", "writer_model", "encoder_model"):
        if (model := getattr(context, key)) != "none" and not faults:
            profile = None if key == "encoder_model" else context.models.profile_of(model, account.region)
            per_minute = 0 if key == "writer_model" else 60 * context.capacity.throttle_rate
            checks[key] = partial(check_model, account, key, model, profile)
            checks[f"{key} quotas"] = partial(check_quotas, account, key, model, profile, per_minute=per_minute)
    for name, run in checks.items():
        try:
            problems = [CheckResult(name, "problem", f"{wrong}: {remedy}") for wrong, remedy in run()]
            yield from problems or [CheckResult(name, "ok", f"as {account.region} needs it")]
        except DependencyFailed as error:
            yield CheckResult(name, "unknown", f"not checked: {' '.join(str(error).split())[:300]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Check models and quotas of the account; exit code 1 for problems, 2 for invalid options."""
    options = argparse.ArgumentParser(prog="make preflight", description=main.__doc__)
    options.add_argument("--context", action="append", default=[], metavar="KEY=VALUE", help="as for the deployment")
    options.add_argument("--strict", action="store_true", help="unknown findings are problems, too, as in a pipeline")
    given = options.parse_args(arguments)
    values = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]
    try:
        context = parse({**values, **{key: value for key, _, value in (each.partition("=") for each in given.context)}})
        session = Session()
    except (ContextInvalid, BotoCoreError) as error:
        options.error(str(error))
    if not (region := os.environ.get("AWS_REGION") or session.region_name):  # noqa: TID251 - the variable of AWS
        options.error("there is no region: set AWS_REGION")
    found = list(findings(Account(session, region), context))
    sys.stdout.writelines(f"{each.status:8}{each.check}: {each.message}\n" for each in found)
    sys.exit(any(each.status in ({"problem", "unknown"} if given.strict else {"problem"}) for each in found))


if __name__ == "__main__":
    main()
