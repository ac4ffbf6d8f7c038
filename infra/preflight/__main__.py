"""The command: checks an account before a deployment, for people and for CI."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from boto3.session import Session
from botocore.exceptions import BotoCoreError

from infra.context import Context
from infra.context_check import ContextInvalid, parse, region_faults
from infra.inference_profiles import InferenceProfile
from infra.preflight.account import (
    Account,
    check_api_log_role,
    check_bootstrap,
    check_names,
    check_opensearch_role,
    check_stacks,
)
from infra.preflight.models import ENCODER, RERANKER, WRITER, Role, check_model
from infra.preflight.plan import Plan, plan_of
from infra.preflight.results import CheckResult, ok, run
from infra.vendor import ROOT
from mats.domain.errors import DependencyFailed

_MARKS = {"ok": "ok      ", "problem": "PROBLEM ", "unknown": "unknown "}


def main(arguments: Sequence[str] | None = None) -> None:
    """Check that a deployment can work in the account; exit code 1 for problems, 2 for invalid options."""
    options = parser()
    given = options.parse_args(arguments)
    try:
        values = _values(given.context)
        context = parse(values)
        session = Session(profile_name=given.profile or None)
    except (ContextInvalid, ValueError, BotoCoreError) as error:
        options.error(str(error))
    region = given.region or _region(os.environ) or session.region_name  # noqa: TID251 - AWS's variables, not ours
    if not region:
        options.error("there is no region: give --region, or set AWS_REGION")
    found = list(findings(Account(session, region), context, partial(plan_of, values)))
    if given.json:
        said = {"region": region, "findings": [asdict(each) for each in found]}
        sys.stdout.write(f"{json.dumps(said, indent=2)}\n")
    else:
        sys.stdout.writelines(f"{_MARKS[each.status]}{each.check}: {each.message}\n" for each in found)
    sys.exit(any(each.status == "problem" for each in found))


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    options = argparse.ArgumentParser(prog="make preflight", description=main.__doc__)
    options.add_argument("--context", action="append", default=[], metavar="KEY=VALUE", help="as for the deployment")
    options.add_argument("--region", default="", help="default: AWS's own setting")
    options.add_argument("--profile", default="", help="of AWS's configuration; default: AWS's own setting")
    options.add_argument("--json", action="store_true", help="print the findings as JSON")
    return options


def findings(account: Account, context: Context, plan: Callable[[], Plan]) -> Iterator[CheckResult]:
    """Every finding; without credentials only that."""
    try:
        yield ok("credentials", f"{account.identity['Arn']} in account {account.identity['Account']}")
    except DependencyFailed as error:
        yield CheckResult("credentials", "problem", str(error))
        return
    faults = list(region_faults(context, account.region))
    yield from (CheckResult("region", "problem", fault) for fault in faults)
    if not faults:
        yield ok("region", f"{account.region} has a way to invoke the models")
        yield from _models(account, context)
    yield from _account(account, context, plan())


def _models(account: Account, context: Context) -> Iterator[CheckResult]:
    def checks(role: Role, model: str, profile: InferenceProfile | None) -> Iterator[CheckResult]:
        return run([(role.name, partial(check_model, account, role, model, profile))])

    for role, model in ((RERANKER, context.rerank_model), (WRITER, context.writer_model)):
        yield from checks(role, model, context.profile_of(model, account.region))
    yield from checks(ENCODER, context.encoder_model, None)


def _account(account: Account, context: Context, plan: Plan) -> Iterator[CheckResult]:
    checks = {
        "bootstrap": partial(check_bootstrap, account, plan),
        "stacks": partial(check_stacks, account, plan),
        "names": partial(check_names, account, plan),
        "api-log-role": partial(check_api_log_role, account, plan, context.api_log_role),
    }
    if context.network == "vpc":
        checks["opensearch-role"] = partial(check_opensearch_role, account)
    yield from run(checks.items())


def _values(given: Sequence[str]) -> dict[str, Any]:
    """The context of cdk.json with what is given.

    Raises:
        ValueError: something given is not `key=value`.
    """
    values: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]
    for each in given:
        key, equals, value = each.partition("=")
        if not equals:
            raise ValueError(f"--context takes KEY=VALUE, not {each!r}")
        values[key] = value
    return values


def _region(environment: Mapping[str, str]) -> str:
    """The region that the CDK's command takes from the environment."""
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ""


if __name__ == "__main__":
    main()
