"""Smoke test of a deployment: put, find and remove one registration (`make smoke`)."""

import argparse
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from boto3.session import Session
from botocore.exceptions import BotoCoreError

from mats.adapters.aws import call, client
from mats.adapters.dynamodb.tables import Tables, key_of, to_row
from mats.client import Bearer, Busy, Client, MatsError, NotFound, Retries, SigV4, Unreachable
from mats.domain.capability.capability import Id, parts
from mats.domain.errors import DependencyFailed

ID = Id("mats-smoke/probe")  # The same in each run, so that the next one removes what a killed one left
_POLL_S = 2.0


class Stuck(Exception):
    """A part of the path does not work; the message names it and the sections of the runbook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoke:
    """Put an item, wait until it is indexed, found and described, remove it, wait until it is gone."""

    tables: Tables
    registry: str  # Name of the table
    api: Client
    timeout_s: float = 300.0  # Of each hop
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    tell: Callable[[str], None] = partial(print, flush=True)
    with_models: bool = True  # True to wait for the writer

    def __call__(self) -> None:
        """Run once. Raises Stuck: at the first hop that does not work; the item is removed in any case."""
        mark = secrets.token_hex(6)
        item = {"kind": "tool", "description": f"Probe {mark} of a smoke test; finds nothing and does nothing."}
        self.tables.ask(self.registry, "put_item", Item={**key_of(ID), **to_row(item)})
        self.tell(f"put {ID} into {self.registry}")
        try:
            self._wait_until("indexed", lambda: self._profile(mark) is not None, "Dead letters, Changes wait")
            self._wait_until("found by discovery", self._is_found, "Reconcile, Reindex, Discovery fails")
            if self.with_models:
                self._wait_until("described by the writer", lambda: self._profile(mark) is True, "A model is refused")
        finally:
            self.tables.delete(self.registry, key_of(ID))
            self.tell(f"removed {ID} from {self.registry}")
        self._wait_until("gone", lambda: not self._is_found(), "Dead letters, Reconcile")

    def _profile(self, mark: str) -> bool | None:
        """Whether the writer has described this item; None if it is not in the index."""
        try:
            found = self.api.capability(ID)
        except NotFound:
            return None
        if found.error:
            raise Stuck(f"Enrichment refused the item: {found.error}. Is the deployed code of this version?")
        return found.enriched if mark in found.description else None

    def _is_found(self) -> bool:
        answer = self.api.discover("probe of a smoke test", namespaces=[parts(ID)[0]])
        return ID in [result.id for result in answer.results]

    def _wait_until(self, what: str, check: Callable[[], bool], sections: str) -> None:
        """Poll until the check succeeds; an API that does not answer is asked again, a refusal ends the test."""
        begun, seen = self.now(), ""
        while (waited := self.now() - begun) <= self.timeout_s:
            try:
                if check():
                    return self.tell(f"{what}: yes, after {waited:.0f} s")
                seen = ""
            except (Unreachable, Busy) as error:
                seen = f" ({error})"
            except (MatsError, BotoCoreError) as error:
                raise Stuck(f"{error}. The caller needs the policy for agents, or a token (--token).") from error
            self.sleep(_POLL_S)
        raise Stuck(f"Not {what} after {self.timeout_s:.0f} s{seen}. See docs/runbook.md: {sections}.")


def url_of(stack: str, region: str) -> str:
    """The output `ApiUrl` of a stack. Raises DependencyFailed: there is no such stack."""
    stacks = client("cloudformation", region=region, timeout_s=10, attempts=3, connections=1)
    outputs = call("CloudFormation", lambda: stacks.describe_stacks(StackName=stack))["Stacks"][0]["Outputs"]
    return next(str(each["OutputValue"]) for each in outputs if each["OutputKey"] == "ApiUrl")


def main(arguments: Sequence[str] | None = None) -> None:
    """Put an item into the Registry, wait until the API finds it, remove it."""
    options = argparse.ArgumentParser(prog="make smoke", description=main.__doc__)
    options.add_argument("--url", help="of the API's stage; default: the stack's output")
    options.add_argument("--name", default="mats", help="of the deployment, the context's key; default: mats")
    options.add_argument("--token", default="", help="bearer token, for auth=jwt; default: calls are signed")
    options.add_argument("--without-models", action="store_true", help="do not wait for the writer")
    given = options.parse_args(arguments)
    region = os.environ.get("AWS_REGION") or Session().region_name or ""  # noqa: TID251 - the variable of the CDK
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the item is removed
    try:
        auth = Bearer(given.token) if given.token else SigV4(region)
        Smoke(
            tables=Tables(region=region, timeout_s=10),
            registry=f"{given.name}-registry",
            api=Client(given.url or url_of(given.name, region), auth=auth, timeout_s=30, retries=Retries(attempts=1)),
            with_models=not given.without_models,
        )()
    except (Stuck, DependencyFailed) as error:
        sys.exit(f"Stuck. {error}")
    sys.stdout.write("The whole path works.\n")


if __name__ == "__main__":
    main()
