"""The smoke test over a table in memory and an API on loopback, with every part of the path broken in turn."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from infra import smoke
from infra.smoke import ID, Smoke, Stuck
from infra.vendor import ROOT
from mats.adapters.dynamodb.tables import Tables, from_row
from mats.client import Bearer, Client, Retries, SigV4
from mats.domain.capability.registration import Registration
from mats.edge.schema import Answer, Capability
from tests.builders import a_profile
from tests.servers.site import Asked, site
from tests.unit.edge.test_openapi import FULL

ANSWER = json.loads(Answer.of(FULL).model_dump_json())
PROFILE = json.loads(Capability.of(a_profile(namespace="mats-smoke", name="probe")).model_dump_json())
SIGNED = SigV4("eu-west-1", Credentials("AKIDEXAMPLE", "secret", "session"))


class Deployment(Tables):
    """Registry, index and API; a step of the path between them each time somebody waits."""

    def __init__(self) -> None:
        self.item: dict[str, Any] | None = None
        self.profile: dict[str, Any] | None = None
        self.searched = False  # True if discovery finds it
        self.broken, self.status, self.now = set[str](), 0, 0.0
        self.told, self.heard = list[str](), list[dict[str, str]]()

    def ask(self, table: str, operation: str, **request: Any) -> dict[str, Any]:
        assert (table, operation) == ("mats-registry", "put_item")
        item = from_row(request["Item"])
        Registration.model_validate(item)
        assert f"{item['namespace']}/{item['name']}" == ID
        self.item = item
        return {}

    def delete(self, table: str, key: Any) -> None:
        if "delete" in self.broken:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DeleteItem")
        self.item = None

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if "interrupt" in self.broken:
            raise KeyboardInterrupt
        if "path" in self.broken or (self.item is None and "removal" in self.broken):
            return
        if self.item is None:
            self.profile, self.searched = None, False
        else:
            described = self.profile is not None and "models" not in self.broken
            error = "kind: is missing" if "refused" in self.broken else ""
            self.searched = self.profile is not None and "alias" not in self.broken
            text = {"description": self.item["description"], "enriched": described, "error": error}
            self.profile = {**PROFILE, "id": ID, **text}

    def answer(self, asked: Asked) -> object:
        self.heard.append(dict(asked.headers))
        if self.status:
            return self.status, {}, b'{"detail": "said so"}'
        if asked.method == "POST":
            assert (asked.path, json.loads(asked.body)["namespaces"]) == ("/live/discover", ["mats-smoke"])
            return {**ANSWER, "results": [{**ANSWER["results"][0], "id": ID}] if self.searched else []}
        assert asked.path.startswith("/live/capabilities/mats-smoke")
        return self.profile or (404, {}, b"{}")


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


@pytest.fixture
def url(deployment: Deployment) -> Iterator[str]:
    with site(deployment.answer) as address:
        yield f"{address}/live"


def api_at(url: str, auth: Bearer | SigV4 = SIGNED) -> Client:
    return Client(url, auth=auth, retries=Retries(attempts=1))


@pytest.fixture
def run(deployment: Deployment, url: str) -> Smoke:
    return Smoke(
        tables=deployment, registry="mats-registry", api=api_at(url), tell=deployment.told.append, timeout_s=60,
        now=lambda: deployment.now, sleep=deployment.sleep,
    )  # fmt: skip


def test_an_item_goes_in_is_found_and_goes_out_again(run, deployment):
    run()
    assert (deployment.item, deployment.profile) == (None, None)
    hops = [line.split(":")[0] for line in deployment.told if ": yes" in line]
    assert hops == ["indexed", "found by discovery", "described by the writer", "gone"]
    assert all("X-Amz-Date" in heard for heard in deployment.heard)


def test_what_an_earlier_run_left_is_not_taken_for_this_one(run, deployment):
    deployment.profile, deployment.broken = {**PROFILE, "id": ID, "enriched": True}, {"path"}
    with pytest.raises(Stuck, match="Not indexed"):
        run()


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("path", "Not indexed after 60 s"),
        ("alias", "Not found by discovery"),
        ("models", "Not described by the writer"),
        ("removal", "Not gone"),
        ("refused", "Enrichment refused the item: kind: is missing"),
    ],
)
def test_a_broken_part_is_named_with_sections_of_the_runbook_and_the_item_removed(run, deployment, broken, says):
    deployment.broken = {broken}
    with pytest.raises(Stuck, match=says) as stuck:
        run()
    assert deployment.item is None
    runbook = (ROOT / "docs" / "runbook.md").read_text("utf-8")
    for sections in re.findall(r"See docs/runbook\.md: (.*)\.$", str(stuck.value)):
        assert [title for title in sections.split(", ") if f"## {title}\n" not in runbook] == []


@pytest.mark.parametrize(("status", "calls"), [(401, 1), (403, 1), (503, 30), (429, 30)])
def test_an_api_that_is_busy_is_waited_for_and_one_that_refuses_is_not(run, deployment, status: int, calls: int):
    deployment.status = status
    with pytest.raises(Stuck, match=f"{status}.*(--token|docs/runbook)"):
        run()
    assert deployment.item is None
    assert len(deployment.heard) >= calls
    assert calls > 1 or len(deployment.heard) == 1


def test_an_address_where_nobody_answers_is_told(run, deployment):
    with pytest.raises(Stuck, match=r"Not indexed after 60 s \("):
        replace(run, api=api_at("http://127.0.0.1:9"))()
    assert deployment.item is None


def test_an_interrupted_run_removes_its_item(run, deployment):
    deployment.broken = {"interrupt"}
    with pytest.raises(KeyboardInterrupt):
        run()
    assert deployment.item is None


def test_without_models_nobody_waits_for_them(run, deployment):
    deployment.broken = {"models"}
    replace(run, with_models=False)()


@pytest.mark.parametrize("token", ["", "ey.ey.ey"])
def test_the_command_signs_or_bears_its_token_and_ends_in_one_line(deployment, url, token, monkeypatch, capsys):
    monkeypatch.setattr(smoke, "Tables", lambda region, timeout_s: deployment)
    monkeypatch.setattr(smoke, "url_of", lambda stack, region: {"mats": url}[stack])
    monkeypatch.setattr(smoke, "Smoke", partial(Smoke, sleep=deployment.sleep, now=lambda: deployment.now))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    smoke.main(["--token", token])
    assert capsys.readouterr().out.endswith("The whole path works.\n")
    assert all(heard["Authorization"].startswith(f"Bearer {token}" if token else "AWS4") for heard in deployment.heard)
    deployment.status = 403
    with pytest.raises(SystemExit, match=r"^Stuck\. 403"):
        smoke.main([])
