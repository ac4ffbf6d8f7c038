"""Smoke test of a deployment: put, find and remove one registration (`make smoke URL=...`)."""

import argparse
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError

from mats.adapters.aws import call, client
from mats.adapters.dynamodb.tables import Tables, from_row, id_of, key_of, to_row
from mats.client import Bearer, Client, MatsError, Refused, Retries, SigV4, Unreachable
from mats.domain.capability.capability import Id, capability_id, parts
from mats.domain.errors import DependencyFailed

NAMESPACE = "mats-smoke"
_LEFT_OVER_S = 3600
"""Items older than this were left by a killed run and are removed; younger ones may belong to another run."""
_TIMEOUT_S, _POLL_S = 300.0, 2.0
_GATEWAY = re.compile(r"\.execute-api\.([a-z0-9-]+)\.amazonaws\.com")
OUTPUTS = {"url": "ApiUrl", "registry_table": "RegistryTable", "profiles_table": "ProfilesTable"}
"""Part of the key of each stack output; the CDK may add a prefix and a suffix."""


class Stuck(Exception):
    """A part of the path does not work; the message names it and the section of the runbook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoke:
    """Put an item, wait for its profile, find it, remove it, wait until it is gone. The item is always removed."""

    tables: Tables
    registry_table: str
    profiles_table: str
    api: Client
    tell: Callable[[str], None]
    timeout_s: float = _TIMEOUT_S  # Timeout of each hop
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    with_models: bool = True  # True to wait for writer and encoder

    def __call__(self) -> None:
        """Run once; `Stuck` is raised at the first hop that does not work."""
        try:
            self._run()
        except DependencyFailed as error:
            raise Stuck(f"DynamoDB: {error}. The caller needs the policies for owners and operators.") from error

    def _run(self) -> None:
        self._remove_left_overs()
        mark = secrets.token_hex(6)
        id = capability_id(NAMESPACE, f"probe-{int(self.now())}-{mark}")
        with self._always_removed(id):
            self._put(id, mark)
            self._wait_until("profile", lambda: self._check_profile(id), _explain_no_profile)
            self._wait_until("found through the API", lambda: self._check_found(id, mark), _explain_not_found)
            if self.with_models:
                self._wait_until(
                    "described by the models",
                    lambda: self._check_enriched(id),
                    "The item is found as its owner wrote it, but the models have not described it: are both turned on "
                    f"for this account and region, and within their quotas? {_see('Changes wait', 'Dead letters')}",
                )
        lost = _see("Streams are not read", "Dead letters", "Changes wait")
        self._wait_until(
            "profile marked as deleted",
            lambda: self._check_deleted(id),
            f"The removal has not come to enrichment. {lost}",
        )
        self._wait_until(
            "no longer found",
            lambda: self._check_gone(id, mark),
            f"What was removed is still found: the index has not taken the tombstone. {_see('Reconcile')}",
        )

    def _put(self, id: Id, mark: str) -> None:
        item = {"kind": "tool", "description": f"Probe {mark} of a smoke test; finds nothing and does nothing."}
        self.tables.ask(self.registry_table, "put_item", Item={**key_of(id), **to_row(item)})
        self.tell(f"put {id} into {self.registry_table}")

    @contextmanager
    def _always_removed(self, id: Id) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with suppress(DependencyFailed):  # the first error is the one to report
                self._remove(id)
            raise
        self._remove(id)

    def _remove(self, id: Id) -> None:
        try:
            self.tables.delete(self.registry_table, key_of(id))
        except DependencyFailed:
            self.tell(f"{id} could not be removed from {self.registry_table}; remove it by hand")
            raise
        self.tell(f"removed {id} from {self.registry_table}")

    def _remove_left_overs(self) -> None:
        ours = self.tables.query(self.registry_table, "namespace", {"S": NAMESPACE})
        for id in filter(self._is_old, map(id_of, ours)):
            self.tell(f"{id} is left over from an earlier run")
            self._remove(id)

    def _is_old(self, id: Id) -> bool:
        word, _, rest = parts(id)[1].partition("-")
        made = rest.partition("-")[0]
        return word == "probe" and made.isdecimal() and self.now() - int(made) > _LEFT_OVER_S

    def _row(self, id: Id) -> dict[str, Any]:
        return from_row(self.tables.get(self.profiles_table, key_of(id)))

    def _check_enriched(self, id: Id) -> tuple[bool, str]:
        indexed, seen = self._check_profile(id)
        return indexed and ", enriched" in seen, seen

    def _check_profile(self, id: Id) -> tuple[bool, str]:
        row = self._row(id)
        if row.get("error"):
            raise Stuck(f"Enrichment refused the item: {row['error']}. Is the deployed code of this version?")
        if not row:
            return False, "no profile yet"
        indexed = row.get("indexed_rev") == row.get("rev")
        state = f"profile of revision {row.get('rev')}, {'' if row.get('enriched') else 'not '}enriched"
        return indexed, f"{state}, {'' if indexed else 'not '}indexed"

    def _check_deleted(self, id: Id) -> tuple[bool, str]:
        row = self._row(id)
        done = not row or (row.get("status") == "deleted" and row.get("indexed_rev") == row.get("rev"))
        return done, f"status {row.get('status', 'none')}, {'' if done else 'not yet '}out of the index"

    def _check_found(self, id: Id, mark: str) -> tuple[bool, str]:
        try:
            answer = self.api.discover(f"probe {mark} of a smoke test", namespaces=[NAMESPACE])
        except Unreachable as error:
            return False, str(error)
        except Refused as error:
            if error.status == 429 or error.status >= 500:
                return False, f"the API answers {error}"
            raise Stuck(_explain_refused(error.status, str(error))) from error
        except MatsError as error:
            raise Stuck(f"the URL answers, but not as discovery does: {error}") from error
        except BotoCoreError as error:
            raise Stuck(f"the call cannot be signed: {error}") from error
        found = [result.id for result in answer.results]
        return id in found, f"the API found {len(found)} of {NAMESPACE}"

    def _check_gone(self, id: Id, mark: str) -> tuple[bool, str]:
        found, seen = self._check_found(id, mark)
        return not found and seen.startswith("the API found"), seen

    def _wait_until(self, what: str, check: Callable[[], tuple[bool, str]], hint: Callable[[str], str] | str) -> None:
        """Poll until the check succeeds, and print each new state; a hint may depend on the state last seen."""
        begun, printed = self.now(), ""
        while True:
            done, seen = check()
            waited = self.now() - begun
            if seen != printed:
                self.tell(f"  {waited:4.0f} s  {seen}")
                printed = seen
            if done:
                self.tell(f"{what}: yes, after {waited:.0f} s")
                return
            if waited >= self.timeout_s:
                why = hint if isinstance(hint, str) else hint(seen)
                raise Stuck(f"{why} (waited {waited:.0f} s; last seen: {seen})")
            self.sleep(_POLL_S)


def _see(*sections: str) -> str:
    return f"See docs/runbook.md: {', '.join(sections)}."


def _explain_no_profile(seen: str) -> str:
    if seen == "no profile yet":
        return "The item has not come to enrichment: stream, bus, rule, queue or function is stuck. " + _see(
            "Streams are not read", "Dead letters", "Enrichment fails"
        )
    return (
        "There is a profile, but the index has not acknowledged it: OpenSearch or the function's way to it is stuck. "
        + _see("The index is red", "Writes are blocked", "Changes wait")
    )


def _explain_not_found(seen: str) -> str:
    if seen.startswith("the API found"):
        return (
            "The index has the profile, but discovery does not find it: does the alias `capabilities` name the index "
            "that enrichment writes to? " + _see("Reindex", "Reconcile")
        )
    return "The API does not answer. " + _see("Discovery fails", "The index is red")


def _explain_refused(status: int, said: str) -> str:
    if status == 401:
        return f"the API rejects the token ({said}); is it for this issuer and audience?"
    if status == 403:
        return (
            f"the API rejects the caller ({said}); it needs the policy for agents, and with auth=jwt a token (--token)"
        )
    return f"the API rejects the query ({said}); is the URL that of the stage?"


def outputs(cloudformation: Any, name: str) -> dict[str, str]:
    """The outputs of both stacks of the deployment of this name, by the keys of `OUTPUTS`."""
    pages = call("CloudFormation", lambda: list(cloudformation.get_paginator("describe_stacks").paginate()))
    ours = [s for page in pages for s in page["Stacks"] if s["StackName"] in (name, f"{name}-data")]
    found = [output for stack in ours for output in stack.get("Outputs", ())]
    return {key: one["OutputValue"] for key, label in OUTPUTS.items() for one in found if label in one["OutputKey"]}


def main(arguments: Sequence[str] | None = None) -> None:
    """Put an item into the Registry, wait for its profile, find it through the API, remove it."""
    given = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        smoke_of(given)()
    except (Stuck, DependencyFailed, ValueError) as error:
        sys.exit(f"Stuck. {error}")
    except KeyboardInterrupt:
        sys.exit("Interrupted.")
    sys.stdout.write("The whole path works.\n")


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="make smoke", description=main.__doc__)
    options.add_argument("--url", help="of the API's stage; default: the stacks' output")
    options.add_argument("--registry-table", help="default: the stacks' output")
    options.add_argument("--profiles-table", help="default: the stacks' output")
    options.add_argument("--name", default="mats", help="of the deployment, the context's key; default: mats")
    options.add_argument("--token", default="", help="bearer token, for auth=jwt; default: calls are signed")
    region = os.environ.get("AWS_REGION", "")  # noqa: TID251 - boto3 alone does not read what the CDK's command reads
    options.add_argument("--region", default=region, help="of stacks and tables; default: AWS's own setting")
    options.add_argument("--without-models", action="store_true", help="do not wait for writer and encoder")
    options.add_argument("--timeout", type=float, default=_TIMEOUT_S, help="seconds to wait for each hop")
    return options


def smoke_of(given: argparse.Namespace) -> Smoke:
    """The smoke test that the options and the stacks' outputs describe."""
    wanted = {name: getattr(given, name) for name in OUTPUTS}
    if not all(wanted.values()):
        cloudformation = client("cloudformation", region=given.region, timeout_s=10, attempts=3, connections=1)
        known = outputs(cloudformation, given.name)
        wanted = {name: value or known.get(name, "") for name, value in wanted.items()}
    missing = [f"--{name.replace('_', '-')}" for name, value in wanted.items() if not value]
    if missing:
        raise Stuck(
            f"No stack called {given.name} or {given.name}-data says what {' and '.join(missing)} should be; give them."
        )
    session = boto3.session.Session(region_name=given.region or None)
    return Smoke(
        tables=Tables(region=given.region, timeout_s=10, session=session),
        registry_table=wanted["registry_table"],
        profiles_table=wanted["profiles_table"],
        api=api_client(wanted["url"], session, given.token),
        tell=partial(print, flush=True),
        timeout_s=given.timeout,
        with_models=not given.without_models,
    )


def api_client(url: str, session: Any, token: str = "") -> Client:
    """A client of the API, with the token or signed for the region of its address; the test itself retries."""
    in_address = _GATEWAY.search(url)
    region = in_address[1] if in_address else session.region_name
    credentials = None if token else session.get_credentials()
    if not token and not (region and credentials):
        raise ValueError("the calls are signed: give AWS credentials and a region, or a token with --token")
    auth = Bearer(token) if token else SigV4(region, credentials)
    return Client(url, auth=auth, timeout_s=30, retries=Retries(attempts=1))


if __name__ == "__main__":
    main()
