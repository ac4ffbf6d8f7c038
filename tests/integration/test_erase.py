"""`mats erase`: a dry run first, then nothing is left, here and in AWS."""

import re
from types import SimpleNamespace

import pytest

from mats.domain.capability.capability import Id
from mats.local.cli.registry import erase_of
from tests.builders import a_registration
from tests.command import sql
from tests.fakes import FakeEncoder
from tests.integration.conftest import Mats
from tests.unit.usecases.test_erase import an_erase
from tests.world import World

ID = "com.acme/ledger"


def _add(mats: Mats, description: str) -> None:
    mats("add", "--namespace", "com.acme", "--name", "ledger", "--kind", "tool", "--description", description)


def test_on_one_machine_a_capability_is_shown_then_erased(mats: Mats):
    _add(mats, "keeps the zanzibar books")
    _add(mats, "keeps the zanzibar books twice")
    mats("trust", ID, "60")
    dry = mats("erase", ID, "--json")
    assert dry.json == {
        "id": ID, "erased": False, "registration": True, "trust": True, "profile": "active", "versions": 2,
    }  # fmt: skip
    assert "repeat the command with --yes" in dry.err
    assert [each["id"] for each in mats("search", "--json", "zanzibar").json["results"]] == [ID]

    done = mats("erase", ID, "--yes")
    assert re.search(r"erased: its registration, its trust, its profile \(active\), 2\s+earlier versions", done.out)
    assert "mats.db" in done.err
    assert mats("search", "--json", "zanzibar").json["results"] == []
    shown = mats("show", ID, "--json").json
    assert (shown["registration"], shown["trust"], shown["versions"]) == (None, None, [])
    assert shown["profile"]["status"] == "deleted"
    assert mats("stats", "--json").json["changes"] == {"waiting": 0, "dead": 0}
    assert mats("reconcile", "--json").json.get("indexed", 0) == 0
    assert mats("search", "--json", "zanzibar").json["results"] == []
    assert mats("erase", ID).code == 1

    _add(mats, "keeps the zanzibar books")
    assert [each["id"] for each in mats("search", "--json", "zanzibar").json["results"]] == [ID]


@pytest.mark.parametrize("command", [("erase", "--yes"), ("remove",)])
def test_outcomes_go_with_the_capability_and_those_of_a_changed_one_stay(mats: Mats, command: tuple[str, ...]):
    _add(mats, "keeps the zanzibar books")
    answer = mats("search", "--json", "zanzibar").json
    mats("feedback", answer["query_id"], "--succeeded", ID)
    _add(mats, "keeps the zanzibar books twice")
    assert len(sql(mats.home / "mats.db", "SELECT * FROM outcomes")) == 1
    assert mats(*command, ID).code == 0
    assert sql(mats.home / "mats.db", "SELECT * FROM outcomes") == []


class InAws:
    """A system in AWS: a sent change is enriched at the third look."""

    def __init__(self, world: World, *, after: int) -> None:
        self.world, self.after, self.sent = world, after, list[Id]()
        self.stores = SimpleNamespace(profiles=world.profiles, bus=SimpleNamespace(send_changes=self.sent.extend))
        self.naps = 0

    def erase(self, settle):
        return an_erase(self.world, settle)

    def sleep(self, seconds: float) -> None:
        self.naps += 1
        if self.naps == self.after:
            self.world.deliver(*self.sent)


@pytest.mark.parametrize("registered", [True, False])
def test_in_aws_the_event_path_writes_the_tombstone_and_is_waited_for(registered: bool):
    world, registration = World(encoder=FakeEncoder()), a_registration(name="ledger")
    if registered:
        world.register(registration)
    system = InAws(world, after=3)
    erased = erase_of(system, sleep=system.sleep)(registration.id)  # type: ignore[arg-type]
    assert (erased, system.naps, system.sent) == (int(registered), 3, [registration.id])
    assert world.index.entries[registration.id].profile.findable is False
