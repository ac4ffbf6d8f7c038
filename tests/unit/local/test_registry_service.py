"""The registry service over a real file: the list while things change, and what a write promises."""

import json
import threading
from contextlib import closing
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from mats.adapters.sqlite.profiles import SqliteListing
from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import (
    CapabilityNotFound,
    DependencyFailed,
    RequestInvalid,
    StorageUnusable,
)
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import Placed, fingerprint
from mats.evaluation.systems.workbench import index_changes
from mats.local.console import api as files
from mats.local.console import capability_list
from mats.local.console.api import precondition
from mats.local.console.capability_list import RefreshThread
from mats.local.console.registry_service import RegistryService
from mats.local.console.requests import (
    ImportRequest,
    LessonRequest,
    ReviewRequest,
    TrustQuery,
    TrustRequest,
)
from mats.local.console.selection import ListQuery
from mats.local.worker import drain
from mats.settings import Settings
from tests.builders import a_registration, an_item
from tests.fakes import FakeEncoder

ANY = precondition(None, None)
REFUND = a_registration().id


@pytest.fixture
def service(local: LocalSystem) -> RegistryService:
    return RegistryService(local, timeout_s=0.0)


def only(service: RegistryService) -> dict:
    (row,) = service.page(ListQuery())["capabilities"]
    return row


def test_a_removed_capability_leaves_the_list_at_once_and_comes_back_as_new(local, service):
    local.stores.registry.put([a_registration()])
    drain(local)
    local.stores.registry.remove(REFUND)
    assert service.page(ListQuery())["total"] == 0
    drain(local)
    assert (service.page(ListQuery())["total"], service.overview()["findable"]) == (0, 0)
    local.stores.registry.put([a_registration(kind="agent")])
    assert (only(service)["kind"], only(service)["status"]) == ("agent", "waiting")
    drain(local)
    assert (only(service)["kind"], only(service)["rev"]) == ("agent", 3)


def test_only_changed_profiles_are_read_again(local, service, monkeypatch):
    local.stores.registry.put([a_registration(name=f"tool-{n}") for n in range(5)])
    drain(local)
    service.capabilities.refresh()
    read: list[str] = []
    list_row = capability_list.list_row
    monkeypatch.setattr(
        capability_list, "list_row", lambda profile, **more: read.append(profile.name) or list_row(profile, **more)
    )
    service.capabilities.refresh()
    assert read == []
    local.stores.trust.put(a_registration(name="tool-3").id, Assigned(trust=50))
    drain(local)
    assert [one["trust"] for one in service.page(ListQuery())["capabilities"]] == [None, None, None, 50, None]
    assert read == ["tool-3"]


def test_a_vector_is_pending_until_the_encoder_has_encoded_the_profile(tmp_path):
    encoder, settings = FakeEncoder(), replace(Settings(), home=tmp_path / "home")
    with closing(local_system(replace(settings, encoder="none"))) as local:
        local.stores.registry.put([a_registration()])
        drain(local)
        before = RegistryService(local)
        assert not only(before)["vector_pending"]
        assert not before.get(REFUND)["vector_pending"]
    with closing(local_system(settings, encoder=encoder)) as local:
        service = RegistryService(local)
        assert only(service)["vector_pending"]
        assert service.get(REFUND)["vector_pending"]
        assert service.overview()["shows"]["pending"] == 1
        index_changes(local, [REFUND])
        assert not only(service)["vector_pending"]
        assert not service.get(REFUND)["vector_pending"]
        assert service.page(ListQuery(show="pending"))["total"] == 0


def test_a_long_list_waits_for_the_next_refresh_but_for_writes_of_this_service(local, service, monkeypatch):
    monkeypatch.setattr(capability_list, "_LONG", 1)
    monkeypatch.setattr(capability_list, "_INTERVAL_S", 3_600)
    local.stores.registry.put([a_registration(name="first")])
    service.capabilities.refresh()
    local.stores.registry.put([a_registration(name="second")])
    assert service.page(ListQuery())["total"] == 1
    service.capabilities.refresh()
    assert service.page(ListQuery())["total"] == 2
    third = a_registration(name="third")
    service.put(third.id, third.item(), lambda etag: True)
    assert service.page(ListQuery())["total"] == 3


def test_changes_missed_by_a_failed_refresh_are_read_by_the_next(local, service, monkeypatch):
    def held(listing, ids):
        raise DependencyFailed("held by another process")

    for name in ("first", "later"):
        local.stores.registry.put([a_registration(name=name)])
        drain(local)
        with monkeypatch.context() as patched:
            patched.setattr(SqliteListing, "profiles", held)
            with pytest.raises(DependencyFailed):
                service.capabilities.refresh()
        assert {row["status"] for row in service.page(ListQuery())["capabilities"]} == {"active"}


def test_a_late_acknowledgement_of_the_index_is_noticed(local, service):
    local.stores.registry.put([a_registration()])
    drain(local)
    with local.stores.database.writing() as connection:
        connection.execute("UPDATE profiles SET indexed_rev = 0")
    assert service.overview()["findable"] == 0
    local.stores.profiles.mark_indexed({REFUND: 1})
    assert service.overview()["findable"] == 1


def test_a_dead_letter_shows_its_reason(local, service):
    local.stores.registry.put([a_registration()])
    with local.stores.database.writing() as connection:
        connection.execute("UPDATE events SET dead = 'a bug'")
    assert only(service)["error"] == "its change is a dead letter: a bug"
    assert service.overview()["shows"]["rejected"] == service.overview()["changes"]["given_up"] == 1
    assert service.get(REFUND)["given_up"] == "a bug"


def test_a_write_returns_although_no_worker_makes_it_findable(local, service):
    assert service.put(REFUND, an_item(), ANY) == {"id": REFUND, "placed": Placed.NEW, "findable": False}
    assert local.stores.registry.get([REFUND])[REFUND] == an_item()
    drain(local)
    assert service.put(REFUND, an_item(), ANY) == {"id": REFUND, "placed": Placed.UNCHANGED, "findable": True}
    assert service.put(REFUND, an_item(version="2"), ANY)["findable"] is False  # what is found is the one before


def test_pages_stay_consistent_while_rows_come_and_go(local, service):
    local.stores.registry.put([a_registration(name=f"tool-{n}") for n in range(6)])
    first = service.page(ListQuery(limit=2))
    assert [one["name"] for one in first["capabilities"]] == ["tool-0", "tool-1"]
    local.stores.registry.remove(Id(first["following"]))
    second = service.page(ListQuery(limit=2, after=first["following"]))
    assert [one["name"] for one in second["capabilities"]] == ["tool-2", "tool-3"]
    last = service.page(ListQuery(limit=2, after=second["following"]))
    assert ([one["name"] for one in last["capabilities"]], last["following"]) == (["tool-4", "tool-5"], None)


@pytest.mark.parametrize("fails", [False, True])
def test_the_refresh_thread_outlives_failures_and_tells_once_that_the_first_refresh_has_ended(monkeypatch, fails):
    monkeypatch.setattr(capability_list, "_INTERVAL_S", 0)
    happened: list[str] = []
    several = threading.Event()

    def refresh() -> None:
        happened.append("refresh")
        if happened.count("refresh") == 3:
            several.set()
        if fails:
            raise StorageUnusable("full")

    thread = RefreshThread(refresh, lambda: happened.append("first"))
    thread.start()
    thread.wait(10)
    assert "first" in happened
    assert several.wait(10)
    assert thread.is_alive()
    thread.stop()
    assert not thread.is_alive()
    assert happened[:2] == ["refresh", "first"]
    assert happened.count("first") == 1


def test_a_missing_folder_serves_no_files(tmp_path):
    console = tmp_path / "console"
    console.mkdir()
    (console / "headers.json").write_text('{"X-Frame-Options": "DENY"}')
    client = TestClient(Starlette(routes=files.file_routes(console)))
    for path in ("/", "/console/main.js"):
        assert client.get(path).status_code == 404
    (console / "index.html").write_text("<!doctype html>")
    assert client.get("/").headers["x-frame-options"] == "DENY"
    (tmp_path / "secret").write_text("not for pages")
    (console / "leak").symlink_to(tmp_path)
    assert (console / "leak" / "secret").exists()
    assert client.get("/console/leak/secret").status_code == 404


def test_a_capability_comes_with_the_snippets_that_call_it(local, service):
    server = {"server": {"command": "pay-server"}}
    local.stores.registry.put([a_registration(descriptor=server), a_registration(name="other")])
    assert service.get(REFUND)["snippets"] is None  # not enriched yet
    drain(local)
    assert service.get(REFUND)["snippets"]["facts"]["command"] == "pay-server"
    assert service.get(Id("com.acme.pay/other"))["snippets"]["missing"].startswith("add ")


@pytest.mark.parametrize("change", [
    lambda owners: owners.assign(TrustRequest(target="com.acme", trust=100)),
    lambda owners: owners.teach(LessonRequest(request="refund a payment", id=REFUND)),
    lambda owners: owners.review(ReviewRequest(id=REFUND, digest="x", approve=True)),
])  # fmt: skip
def test_what_is_for_operators_refuses_owners_itself(service, change):
    with pytest.raises(RequestInvalid, match="for operators"):
        change(service.for_owners())


@pytest.fixture
def two(local: LocalSystem, service: RegistryService) -> RegistryService:
    """The service over two capabilities of com.acme.pay."""
    local.stores.registry.put([a_registration(), a_registration(name="other")])
    drain(local)
    return service


def test_pages_of_a_sorted_list_follow_each_other(local, two):
    for name, trust in (("refund_payment", 5), ("other", 50)):
        local.stores.trust.put(a_registration(name=name).id, Assigned(trust=trust))
    drain(local)
    first = two.page(ListQuery(sort="-trust", limit=1))
    second = two.page(ListQuery(sort="-trust", limit=1, after=first["following"]))
    assert [page["capabilities"][0]["trust"] for page in (first, second)] == [50, 5]
    assert second["following"] is None
    assert two.page(ListQuery(sort="-trust", after="no/such"))["capabilities"] == []


def assign(service: RegistryService, **request):
    return service.assign(TrustRequest.parse(request))


def test_a_namespace_has_trust_and_a_verified_provider(local, two):
    assert assign(two, target="com.acme.*", trust=60, provider="Acme")["capabilities"] == 2
    assert two.trust_of(TrustQuery(target="com.acme")) == {"target": "com.acme", "trust": 60, "provider": "Acme"}
    drain(local)
    assert {one["trust"] for one in two.page(ListQuery())["capabilities"]} == {60}
    assert assign(two, target="com.acme", trust=None) == {
        "target": "com.acme", "trust": None, "provider": "Acme", "capabilities": 2,
    }  # fmt: skip


def test_a_capability_has_trust_and_its_flags_are_cleared_for_the_text_as_it_is(local, two):
    assert assign(two, target=REFUND, trust=70)["capabilities"] == 1
    assign(two, target=REFUND, cleared=True)
    [row] = local.stores.trust.rows([REFUND]).values()
    assert row.cleared == fingerprint(Registration.parse(local.stores.registry.get([REFUND])[REFUND]).item())
    assert row.trust == 70
    with pytest.raises(CapabilityNotFound):
        assign(two, target="com.acme/none", trust=70)


@pytest.mark.parametrize("request_", [
    {"target": "no such"}, {"target": "com.acme", "provider": "a\u202eb"}, {"target": "com.acme", "cleared": True},
    {"target": "com.acme", "trust": 101}, {"target": "com.acme", "colour": "red"}, {"trust": 1}, [],
])  # fmt: skip
def test_an_assignment_that_is_not_one_is_refused(two, request_):
    with pytest.raises(RequestInvalid):
        two.assign(TrustRequest.parse(request_))


def test_where_owners_write_what_operators_trust_is_written_by_operators_alone(local, two):
    owners = two.for_owners()
    assign(two, target="com.acme", provider="Acme")
    new = an_item(namespace="com.acme.support", name="refund_now")
    for write in (
        lambda: owners.put(Id("com.acme.support/refund_now"), new, lambda etag: True),
        lambda: owners.remove(Id(REFUND), lambda etag: True),
    ):
        with pytest.raises(RequestInvalid, match="operators trust"):
            write()
    shown = imported(owners, json.dumps(new), dry_run=False)
    assert (shown["new"], shown["rejected"]) == (0, 1)
    assert Id("com.acme.support/refund_now") not in local.stores.registry.get([Id("com.acme.support/refund_now")])
    elsewhere = an_item(namespace="org.other", name="refund_now")
    assert owners.put(Id("org.other/refund_now"), elsewhere, lambda etag: True)["placed"] == "new"
    assert imported(two, json.dumps(new), dry_run=False)["new"] == 1


def test_a_capability_names_those_of_other_namespaces_with_its_text(local, two):
    [item] = local.stores.registry.get([Id(REFUND)]).values()
    local.stores.registry.put([Registration.parse({**item, "namespace": "org.copy"})])
    drain(local)
    assert two.get(Id(REFUND))["same_text"] == ["org.copy/" + REFUND.partition("/")[2]]


def imported(service: RegistryService, *texts: str, **more):
    documents = [{"name": f"{place}.json", "text": text} for place, text in enumerate(texts)]
    return service.import_documents(ImportRequest.parse({"documents": documents, **more}))


def test_a_dry_run_says_what_an_import_would_do_and_writes_nothing(local, two):
    text = json.dumps(an_item(name="third")) + "\n" + json.dumps({"namespace": "com.acme"})
    shown = imported(two, text, "no JSON at all")
    assert (shown["dry_run"], shown["new"], shown["rejected"]) == (True, 1, 2)
    assert [one["id"] for one in shown["capabilities"]] == ["com.acme.pay/third"]
    assert len(list(local.stores.registry.ids())) == 2
    done = imported(two, text, dry_run=False)
    assert (done["new"], done["rejected"], len(list(local.stores.registry.ids()))) == (1, 1, 3)
    assert imported(two, text)["unchanged"] == 1
    json.dumps([shown, done])


def test_lone_surrogates_and_wrong_namespaces_are_faults(service):
    assert imported(service, '{"name": "\ud800"}')["rejected"] == 1
    with pytest.raises(RequestInvalid, match="namespace"):
        imported(service, "{}", namespace="No Such")
