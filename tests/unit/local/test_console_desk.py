"""The console's registry over a real file: what is listed while things change, what a write promises."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from mats.adapters.sqlite.profiles import SqliteProfiles
from mats.bootstrap.local import Local
from mats.domain.capability import Id
from mats.domain.errors import CapabilityNotFound, DependencyFailed, KindConflict, RegistrationInvalid, StorageUnusable
from mats.domain.placement import Placed
from mats.local.console import files, roll
from mats.local.console.asked import Wanted
from mats.local.console.conditions import condition
from mats.local.console.desk import Desk, Overtaken
from mats.local.console.keeper import Keeper
from mats.local.worker import drain
from mats.settings import Settings
from tests.builders import a_registration, an_item

ANY = condition(None, None)
REFUND = a_registration().id


@pytest.fixture
def local(tmp_path) -> Iterator[Local]:
    opened = Local(replace(Settings(), home=tmp_path / "home", encoder="none"))
    yield opened
    opened.close()


@pytest.fixture
def desk(local: Local, monkeypatch) -> Desk:
    monkeypatch.setattr("mats.local.console.desk._PATIENCE_S", 0.0)
    return Desk(local)


def only(desk: Desk) -> dict:
    (row,) = desk.page(Wanted())["capabilities"]
    return row


def test_what_is_registered_is_listed_before_it_has_a_profile(local, desk):
    local.registry.put([a_registration()])
    row = only(desk)
    assert (row["id"], row["kind"], row["status"], row["rev"]) == (REFUND, "tool", "waiting", 0)
    overview = desk.overview()
    assert (overview["registered"], overview["findable"], overview["changes"]["waiting"]) == (1, 0, 1)
    drain(local)
    assert (only(desk)["status"], desk.overview()["findable"]) == ("active", 1)


def test_what_is_taken_out_is_off_the_list_at_once_and_comes_back_as_new(local, desk):
    local.registry.put([a_registration()])
    drain(local)
    local.registry.remove(REFUND)
    assert desk.page(Wanted())["total"] == 0
    drain(local)
    assert (desk.page(Wanted())["total"], desk.overview()["findable"]) == (0, 0)
    local.registry.put([a_registration(kind="agent")])
    assert (only(desk)["kind"], only(desk)["status"]) == ("agent", "waiting")
    drain(local)
    assert (only(desk)["kind"], only(desk)["rev"]) == ("agent", 3)


def test_only_what_has_changed_is_read_again(local, desk, monkeypatch):
    local.registry.put([a_registration(name=f"tool-{n}") for n in range(5)])
    drain(local)
    desk.look()
    read: list[str] = []
    row_of = roll.row_of
    monkeypatch.setattr(
        roll, "row_of", lambda profile, indexed: read.append(profile.name) or row_of(profile, indexed=indexed)
    )
    desk.look()
    assert read == []
    local.trust.put(a_registration(name="tool-3").id, 50)
    drain(local)
    assert [one["trust"] for one in desk.page(Wanted())["capabilities"]] == [None, None, None, 50, None]
    assert read == ["tool-3"]


def test_a_look_that_fails_is_made_up_for(local, desk, monkeypatch):
    def held(profiles, ids):
        raise DependencyFailed("held by another process")

    for name in ("first", "later"):
        local.registry.put([a_registration(name=name)])
        drain(local)
        with monkeypatch.context() as patched:
            patched.setattr(SqliteProfiles, "without_vectors", held)
            with pytest.raises(DependencyFailed):
                desk.look()
        assert {row["status"] for row in desk.page(Wanted())["capabilities"]} == {"active"}


def test_what_the_index_acknowledges_late_is_noticed(local, desk):
    local.registry.put([a_registration()])
    drain(local)
    with local.database.writing() as connection:
        connection.execute("UPDATE profiles SET indexed_rev = 0")
    assert desk.overview()["findable"] == 0
    local.profiles.mark_indexed({REFUND: 1})
    assert desk.overview()["findable"] == 1


def test_a_change_that_was_given_up_says_why(local, desk):
    local.registry.put([a_registration()])
    with local.database.writing() as connection:
        connection.execute("UPDATE events SET dead = 'a bug'")
    assert only(desk)["error"] == "its change was given up: a bug"
    assert desk.overview()["shows"]["rejected"] == desk.overview()["changes"]["given_up"] == 1
    assert desk.one(REFUND)["given_up"] == "a bug"


def test_a_write_is_acknowledged_though_nothing_makes_it_findable(local, desk):
    assert desk.put(REFUND, an_item(), ANY) == {"id": REFUND, "placed": Placed.NEW, "findable": False}
    assert local.registry.get([REFUND])[REFUND] == an_item()
    drain(local)
    assert desk.put(REFUND, an_item(), ANY) == {"id": REFUND, "placed": Placed.UNCHANGED, "findable": True}
    assert desk.put(REFUND, an_item(version="2"), ANY)["findable"] is False  # what is found is the one before


def test_a_write_is_refused_when_something_else_is_there(local, desk):
    with pytest.raises(Overtaken):
        desk.put(REFUND, an_item(), condition('"seen"', None))
    assert local.registry.get([REFUND]) == {}
    desk.put(REFUND, an_item(), ANY)
    with pytest.raises(Overtaken):
        desk.put(REFUND, an_item(version="2"), condition(None, "*"))
    with pytest.raises(Overtaken):
        desk.remove(REFUND, condition('"seen"', None))
    with pytest.raises(KindConflict):
        desk.put(REFUND, an_item(kind="agent"), ANY)
    with pytest.raises(RegistrationInvalid, match=r"com\.acme\.pay/other"):
        desk.put(Id("com.acme.pay/other"), an_item(), ANY)
    assert local.registry.get([REFUND])[REFUND] == an_item()
    assert desk.remove(REFUND, condition(f'"{desk.one(REFUND)["etag"]}"', None))["removed"]
    with pytest.raises(CapabilityNotFound):
        desk.remove(REFUND, condition('"seen"', None))


@pytest.mark.parametrize(
    ("item", "id"),
    [
        (an_item(kind="robot"), REFUND),
        (an_item(kind="robot", name=" refund_payment "), REFUND),
        (an_item(name=""), None),
        (an_item(namespace=3), None),
        ({"kind": "tool"}, None),
        ([], None),
        (None, None),
    ],
)
def test_a_check_names_the_id_as_far_as_there_is_one(desk, item, id):
    told = desk.check(item)
    assert (told["valid"], told["id"], told["placed"]) == (False, id, None)
    assert told["errors"]


def test_a_check_and_a_preview_change_nothing(local, desk):
    desk.check(an_item())
    told = desk.preview(an_item())
    assert told["placed"] == "new"
    json.dumps(told)
    assert local.counts()["registered"] == local.events.depth().waiting == 0


def test_pages_hold_together_while_rows_come_and_go(local, desk):
    local.registry.put([a_registration(name=f"tool-{n}") for n in range(6)])
    first = desk.page(Wanted(limit=2))
    assert [one["name"] for one in first["capabilities"]] == ["tool-0", "tool-1"]
    local.registry.remove(Id(first["following"]))
    second = desk.page(Wanted(limit=2, after=first["following"]))
    assert [one["name"] for one in second["capabilities"]] == ["tool-2", "tool-3"]
    last = desk.page(Wanted(limit=2, after=second["following"]))
    assert ([one["name"] for one in last["capabilities"]], last["following"]) == (["tool-4", "tool-5"], None)


def test_a_log_that_cannot_be_read_says_so(local, desk):
    (local.settings.home / "mats.log").mkdir()
    with pytest.raises(StorageUnusable, match=r"mats\.log"):
        desk.exposure()


def test_the_keeper_looks_on_though_a_look_fails():
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        raise StorageUnusable("full")

    keeper = Keeper(look)
    keeper.start()
    keeper.wait(10)
    assert looks
    assert keeper.is_alive()
    keeper.stop()
    assert not keeper.is_alive()


def test_a_folder_that_is_not_there_has_no_files(tmp_path):
    console = tmp_path / "console"
    console.mkdir()
    (console / "headers.json").write_text('{"X-Frame-Options": "DENY"}')
    client = TestClient(Starlette(routes=files.routes(console, tmp_path / "none")))
    for path in ("/", "/console/main.js", "/evaluation/report.json", "/evaluation/"):
        assert client.get(path).status_code == 404
    (console / "index.html").write_text("<!doctype html>")
    assert client.get("/").headers["x-frame-options"] == "DENY"
    (tmp_path / "secret").write_text("not for pages")
    (console / "leak").symlink_to(tmp_path)
    assert (console / "leak" / "secret").exists()
    assert client.get("/console/leak/secret").status_code == 404
