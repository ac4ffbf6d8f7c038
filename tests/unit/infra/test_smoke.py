"""The smoke test over tables in memory and an API on loopback, with every part of the path broken in turn."""

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import boto3
import botocore.session
import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from infra import smoke
from infra.smoke import NAMESPACE, Smoke, Stuck, api_client
from infra.vendor import ROOT
from mats.adapters.dynamodb.tables import Tables, from_row, to_row
from mats.client import Bearer, Client, Retries, SigV4
from mats.domain.capability.registration import Registration
from mats.edge.schema import Answer
from tests.aws.tables import a_table, credentials
from tests.servers.site import Asked, site
from tests.unit.edge.test_openapi import FULL

SERVICE = botocore.session.get_session().get_service_model("dynamodb")
ANSWER = json.loads(Answer.of(FULL).model_dump_json())
OPERATIONS = {"put_item": "PutItem", "get_item": "GetItem", "delete_item": "DeleteItem", "query": "Query"}


class TablesOver(Tables):
    """The tables over a double of DynamoDB's client."""

    def __init__(self, client: Any) -> None:
        self._client = client


class Deployment:
    """Tables, and the path between them: a step of it each time somebody waits."""

    def __init__(self) -> None:
        self.registry: dict[str, dict] = {}
        self.profiles: dict[str, dict] = {}
        self.index: set[str] = set()
        self.broken: set[str] = set()
        self.now = 1_800_000_000.0
        self.status: int | None = None
        self.interrupt = False
        self.heard: list[dict[str, str]] = []
        self.told: list[str] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.interrupt:
            raise KeyboardInterrupt
        if "path" in self.broken:
            return
        for name in self.registry:
            self._check_enriched(name)
        for name in self.profiles.keys() - self.registry.keys():
            if "removal" not in self.broken:
                self.profiles[name] |= {"status": "deleted"}
                if "tombstone" not in self.broken:
                    self.index.discard(name)

    def _check_enriched(self, name: str) -> None:
        row = self.profiles.setdefault(name, {"rev": 0, "indexed_rev": 0, "status": "active", "enriched": False})
        if "refused" in self.broken:
            row["error"] = "kind: is missing"
            return
        described = row["rev"] > 0 and "models" not in self.broken
        row |= {"enriched": row["enriched"] or described, "rev": row["rev"] or 1}
        if "index" not in self.broken:
            row["indexed_rev"] = row["rev"]
            if "alias" not in self.broken:
                self.index.add(name)

    def __getattr__(self, operation: str) -> Any:
        """An operation of DynamoDB, its parameters checked against the service's own description."""

        def call(**request: Any) -> dict[str, Any]:
            shape = SERVICE.operation_model(OPERATIONS[operation]).input_shape
            faults = ParamValidator().validate(request, shape)
            assert not faults.has_errors(), faults.generate_report()
            if operation in self.broken:
                said = {"Code": "AccessDeniedException", "Message": f"not allowed to {operation}"}
                raise ClientError({"Error": said}, operation)
            return getattr(self, f"_{operation}")(request)

        return call

    def _put_item(self, request: dict) -> dict:
        assert request["TableName"] == "registry"
        item = from_row(request["Item"])
        Registration.model_validate(item)
        self.registry[item["name"]] = item
        return {}

    def _delete_item(self, request: dict) -> dict:
        assert request["TableName"] == "registry"
        self.registry.pop(from_row(request["Key"])["name"], None)
        return {}

    def _get_item(self, request: dict) -> dict:
        assert (request["TableName"], request["ConsistentRead"]) == ("profiles", True)
        key = from_row(request["Key"])
        found = self.profiles.get(key["name"])
        return {"Item": to_row({**key, **found})} if found else {}

    def _query(self, request: dict) -> dict:
        """A page has one item."""
        after = from_row(request["ExclusiveStartKey"])["name"] if "ExclusiveStartKey" in request else ""
        names = [name for name in sorted(self.registry) if name > after][:1]
        keys = [to_row({"namespace": NAMESPACE, "name": name}) for name in names]
        return {"Items": keys, **({"LastEvaluatedKey": keys[0]} if keys else {})}

    def answer(self, body: dict) -> object:
        if self.status:
            return self.status, {}, b'{"detail": "said so"}'
        assert body["namespaces"] == [NAMESPACE]
        results = [{**ANSWER["results"][0], "id": f"{NAMESPACE}/{name}"} for name in sorted(self.index)]
        return {**ANSWER, "results": results}


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


@pytest.fixture
def url(deployment: Deployment) -> Iterator[str]:
    def answer(asked: Asked) -> object:
        assert (asked.method, asked.path) == ("POST", "/live/discover")
        deployment.heard.append(dict(asked.headers))
        return deployment.answer(json.loads(asked.body))

    with site(answer) as address:
        yield f"{address}/live"


def api_at(url: str, auth: Bearer | SigV4) -> Client:
    return Client(url, auth=auth, retries=Retries(attempts=1))


@pytest.fixture
def run(deployment: Deployment, url: str) -> Smoke:
    return Smoke(
        tables=TablesOver(deployment),
        registry_table="registry",
        profiles_table="profiles",
        api=api_at(url, SigV4("eu-west-1", Credentials("AKIDEXAMPLE", "secret", "session"))),
        tell=deployment.told.append,
        timeout_s=60,
        now=lambda: deployment.now,
        sleep=deployment.sleep,
    )


def test_an_item_goes_in_is_found_and_goes_out_again(run, deployment):
    run()
    assert deployment.registry == {}
    assert deployment.index == set()
    assert [line.split(":")[0] for line in deployment.told if ": yes" in line] == [
        "profile", "found through the API", "described by the models", "profile marked as deleted", "no longer found"
    ]  # fmt: skip


def test_what_a_killed_run_left_is_removed_and_what_is_not_ours_stays(run, deployment):
    young = "probe-1800000000-of-another-run"
    deployment.registry |= {"probe-1700000000-a": {}, "probe-1700000001-b": {}, "mine": {}, "probe-x-y": {}, young: {}}
    run()
    assert set(deployment.registry) == {"mine", "probe-x-y", young}


def test_with_a_token_calls_bear_it_and_nothing_else(run, deployment, url):
    replace(run, api=api_client(url, boto3.session.Session(), "ey.ey.ey"))()
    assert {heard["Authorization"] for heard in deployment.heard} == {"Bearer ey.ey.ey"}
    assert not any("X-Amz-Date" in heard for heard in deployment.heard)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("path", "has not come to enrichment"),
        ("index", "the index has not acknowledged it"),
        ("alias", "does the alias"),
        ("models", "the models have not described it"),
        ("removal", "The removal has not come to enrichment"),
        ("tombstone", "What was removed is still found"),
        ("refused", "Enrichment refused the item: kind: is missing"),
        ("put_item", "not allowed to put_item"),
        ("get_item", "not allowed to get_item"),
        ("query", "not allowed to query"),
    ],
)
def test_a_broken_part_is_named_and_the_item_removed(run, deployment, broken, says):
    deployment.broken = {broken}
    with pytest.raises(Stuck, match=says) as stuck:
        run()
    assert deployment.registry == {}
    runbook = (ROOT / "docs" / "runbook.md").read_text("utf-8")
    for section in re.findall(r"See docs/runbook\.md: (.*?)\.(?: |$)", str(stuck.value)):
        assert [title for title in section.split(", ") if f"## {title}\n" not in runbook] == []


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "rejects the token"),
        (403, "rejects the caller"),
        (404, "is the URL that of the stage"),
        (500, "The API does not answer"),
        (503, "The API does not answer"),
        (429, "The API does not answer"),
    ],
)
def test_an_api_that_refuses_or_fails_is_told_apart(run, deployment, status, says):
    deployment.status = status
    with pytest.raises(Stuck, match=says):
        run()
    assert deployment.registry == {}
    assert (len(deployment.heard) == 1) is (status in (401, 403, 404)), "a failure is waited for, a refusal is not"


def test_an_address_where_nobody_or_something_else_answers_is_told(run, deployment):
    with pytest.raises(Stuck, match="does not answer"):
        replace(run, api=api_at("http://127.0.0.1:9", Bearer("t")))()
    assert deployment.registry == {}
    deployment.answer = lambda _: b"<html>"
    with pytest.raises(Stuck, match="not as discovery does"):
        run()


def test_an_interrupted_run_removes_its_item(run, deployment):
    deployment.interrupt = True
    with pytest.raises(KeyboardInterrupt):
        run()
    assert deployment.registry == {}
    assert deployment.told[-1].startswith("removed")


def test_an_item_that_cannot_be_removed_is_named_and_hides_no_earlier_fault(run, deployment):
    deployment.broken = {"delete_item", "path"}
    with pytest.raises(Stuck, match="has not come to enrichment"):
        run()
    (left,) = deployment.registry
    assert any(left in line and "by hand" in line for line in deployment.told)
    deployment.broken = {"delete_item"}
    with pytest.raises(Stuck, match="not allowed to delete_item"):
        run()


def test_without_models_nobody_waits_for_them(run, deployment):
    deployment.broken = {"models"}
    replace(run, with_models=False)()


def test_what_the_stacks_say_of_themselves_is_found_whatever_the_cdk_puts_around_it():
    def stack(name: str, **outputs: str) -> dict:
        return {"StackName": name, "Outputs": [{"OutputKey": key, "OutputValue": outputs[key]} for key in outputs]}

    stacks = Mock()
    stacks.get_paginator.return_value.paginate.return_value = [
        {"Stacks": [stack("mats-dev-data", RegistryTable="not-ours"), {"StackName": "mats-empty"}]},
        {"Stacks": [stack("mats-data", RegistryTableName12AB="r", TablesProfilesTable="p")]},
        {"Stacks": [stack("mats", ApiUrlOutput="https://api.example/live/")]},
    ]
    known = smoke.outputs(stacks, "mats")
    stacks.get_paginator.assert_called_once_with("describe_stacks")
    assert known == {"registry_table": "r", "profiles_table": "p", "url": "https://api.example/live/"}


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://abc123.execute-api.eu-central-1.amazonaws.com/live/", "eu-central-1"),
        ("https://discovery.example.com", "us-east-1"),
    ],
)
def test_calls_are_signed_for_the_region_of_the_api_whatever_the_caller_has_set(url, region, monkeypatch):
    clients: dict[str, Any] = {}
    monkeypatch.setattr(smoke, "Client", lambda url, **options: clients.update(options))
    api_client(url, boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1"))
    assert clients["auth"].region == region


def test_without_credentials_or_a_token_no_call_is_made(monkeypatch):
    credentials(monkeypatch)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(ValueError, match="--token"):
        api_client("https://discovery.example.com", boto3.session.Session())


def test_the_command_says_in_one_line_how_the_test_ended(run, deployment, monkeypatch, capsys):
    monkeypatch.setattr(smoke, "smoke_of", lambda given: run)
    before = signal.getsignal(signal.SIGTERM)
    try:
        smoke.main(["--url", "https://api.example"])
        deployment.status = 403
        with pytest.raises(SystemExit, match=r"^Stuck\. the API rejects the caller"):
            smoke.main([])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().out == "The whole path works.\n"


@pytest.mark.server
def test_the_command_as_it_is_wired_works_on_real_tables(deployment, url, dynamodb_url, monkeypatch):
    credentials(monkeypatch, dynamodb=dynamodb_url)
    tables = Tables()
    registry, profiles = a_table(tables), a_table(tables)
    left = {"namespace": NAMESPACE, "name": "probe-1700000000-left"}
    tables.ask(registry, "put_item", Item=to_row({**left, "kind": "tool"}))

    def path(seconds: float) -> None:
        """The path between the real tables: what the stand-in makes of the items that are there now."""
        items = [from_row(row) for row in tables.all_rows(registry, "scan")]
        deployment.registry = {item["name"]: item for item in items}
        deployment.sleep(seconds)
        for name, row in deployment.profiles.items():
            tables.ask(profiles, "put_item", Item=to_row({"namespace": NAMESPACE, "name": name, **row}))

    given = ["--url", url, "--registry-table", registry, "--profiles-table", profiles]
    smoke_of = smoke.smoke_of(smoke.parser().parse_args(given))
    replace(smoke_of, tell=deployment.told.append, timeout_s=60, now=lambda: deployment.now, sleep=path)()
    assert list(tables.all_rows(registry, "scan")) == []
    assert f"removed {NAMESPACE}/{left['name']} from {registry}" in deployment.told
    assert deployment.told[-1].startswith("no longer found: yes")
