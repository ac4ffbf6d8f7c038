"""Keeping a registry in step with sources: what is written, what stays, what is removed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.sources import SqliteSources
from mats.domain.capability.registration import Registration
from mats.domain.profile.origin import Placed
from mats.domain.profile.sync import SourceKind, Step, TrackedEntry, TrackedSource, content_digest, next_step
from mats.local.imports.sync import SourceSync
from tests.builders import a_registration
from tests.fakes import MemoryRegistry


def tool(name: str = "pay", **changes: object) -> Registration:
    return a_registration(name=name, **changes)


class World:
    """A registry, and the sources that are synced to it."""

    def __init__(self, database: Database) -> None:
        self.registry, self.book = MemoryRegistry(), SqliteSources(database)
        self.first = {"a", "b"}

    def source(self, name: str = "a") -> SourceSync:
        if name not in {state.source.name for state in self.book.all()}:
            self.book.add(TrackedSource(name=name, kind=SourceKind.DOCUMENT, location=(name,)))
        return SourceSync(self.registry, self.book, name, first=name in self.first)

    def sync(self, *listed: Registration, name: str = "a") -> SourceSync:
        """A whole sync of what a source lists now."""
        sync = self.source(name)
        sync.put(listed)
        sync.mark_gone([id for id in sync.entries if id not in {one.id for one in listed}])
        self.first -= {name}
        return sync

    def version(self, name: str = "pay") -> str | None:
        item = self.registry.items.get(tool(name).id)
        return item.get("version", "") if item else None


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    database = Database(tmp_path / "mats.db")
    yield World(database)
    database.close()


def test_what_is_new_or_changed_is_written_and_the_rest_is_not(world: World, monkeypatch: pytest.MonkeyPatch):
    written, record = [], SqliteSources.record
    monkeypatch.setattr(SqliteSources, "record", lambda *arguments: written.append(1) or record(*arguments))
    assert set(world.source().put([tool(), tool("refund")]).values()) == {Placed.NEW}
    written.clear()
    placed = world.source().put([tool(), tool("refund", version="2")])
    assert placed == {tool().id: Placed.UNCHANGED, tool("refund").id: Placed.CHANGED}
    assert len(written) == 2  # before the write and after it
    world.source().put([tool(), tool("refund", version="2")])
    assert len(written) == 2


def test_what_is_written_over_is_classed(world: World):
    world.sync(tool("pay", endpoint="https://a.example"), tool("new"))
    [(id, reasons)] = world.sync(tool("pay", endpoint="https://b.example"), tool("new")).changed
    assert (id, [str(reason.change) for reason in reasons]) == (tool("pay").id, ["dangerous"])


def test_what_someone_else_changed_since_stays(world: World):
    world.sync(tool(), tool("refund"))
    world.registry.put([tool(version="by hand")])
    later = world.sync(tool(version="2"), tool("refund"))
    assert [entry.id for entry in later.kept] == [tool().id]
    assert world.version() == "by hand"
    world.registry.remove(tool().id)
    assert not world.sync(tool(version="2"), tool("refund")).kept
    assert world.version() == "2"


def test_an_edit_of_describing_attributes_survives_and_lets_the_rest_through(world: World):
    world.sync(tool(description="old", tags=["a"], visible_to=["ops"], endpoint="https://a.example"))
    edited = tool(description="old", tags=["mine"], examples=["give money back"], endpoint="https://a.example")
    world.registry.put([edited])
    same = world.sync(tool(description="old", tags=["a"], visible_to=["ops"], endpoint="https://a.example"))
    assert world.registry.items[tool().id] == edited.item()
    assert [entry.reason for entry in same.kept] == ["keeps what was edited here: tags, examples, visible_to"]
    for _ in range(2):
        world.sync(tool(description="new", tags=["b"], visible_to=["all"], endpoint="https://b.example"))
        assert world.registry.items[tool().id] == {
            **edited.item(), "description": "new", "endpoint": "https://b.example",
        }  # fmt: skip
    assert not world.sync().prune(force=True).removed


def test_an_edit_back_to_the_source_follows_it_again(world: World):
    world.sync(tool(tags=["a"]))
    world.registry.put([tool(tags=["mine"])])
    world.sync(tool(tags=["b"]))
    world.registry.put([tool(tags=["b"])])
    assert not world.sync(tool(tags=["c"])).kept
    assert world.registry.items[tool().id]["tags"] == ["c"]


@pytest.mark.parametrize("change", [{"endpoint": "https://mine.example"}, {"version": "9"}, {"input_schema": {"a": 1}}])
def test_an_entry_whose_call_was_edited_stays_whole(world: World, change):
    world.sync(tool(tags=["a"]))
    world.registry.put([tool(tags=["mine"], **change)])
    later = world.sync(tool(tags=["a"], description="new"))
    assert world.registry.items[tool().id] == tool(tags=["mine"], **change).item()
    assert len(later.kept) == 1


def test_what_would_not_be_valid_with_an_edit_stays_whole(world: World):
    world.sync(tool())
    world.registry.put([tool(description="x" * 90_000)])
    later = world.sync(tool(input_schema={"description": "y" * 320_000}))
    assert ("input_schema" in world.registry.items[tool().id], len(later.kept)) == (False, 1)


def test_digests_of_an_earlier_version_know_their_content_and_merge_nothing(world: World):
    world.sync(tool(tags=["a"]))
    (id, entry), *_ = world.book.entries("a").items()
    world.book.record("a", {id: TrackedEntry(entry.digest.partition(" ")[0])})
    world.sync(tool(tags=["b"]))
    assert world.registry.items[id]["tags"] == ["b"]
    world.book.record("a", {id: TrackedEntry(entry.digest.partition(" ")[0])})
    world.registry.put([tool(tags=["mine"])])
    assert len(world.sync(tool(tags=["c"], version="2")).kept) == 1
    assert world.version() == ""


def test_the_first_sync_replaces_what_is_registered_and_later_ones_do_not(world: World):
    world.registry.put([tool(version="imported")])
    world.sync(tool(version="2"))
    assert world.version() == "2"
    world.registry.put([tool("refund", version="by hand")])
    later = world.sync(tool(version="2"), tool("refund"))
    assert [entry.id for entry in later.kept] == [tool("refund").id]
    assert world.version("refund") == "by hand"
    assert not world.sync(tool(version="2")).prune(force=True).removed
    assert world.version("refund") == "by hand"


def test_the_first_sync_keeps_what_only_the_registry_says_and_names_what_it_replaces(world: World):
    world.registry.put([tool(description="Mine", examples=["pay Ann"], visible_to=["ops"])])
    first = world.sync(tool(description="Theirs", version="2"))
    item = world.registry.items[tool().id]
    assert (item["description"], item["examples"], item["visible_to"]) == ("Theirs", ["pay Ann"], ["ops"])
    assert [entry.reason for entry in first.kept] == [
        "the first sync keeps examples, visible_to and replaces description"
    ]
    later = world.sync(tool(description="Theirs, again", version="3"))
    item = world.registry.items[tool().id]
    assert (item["description"], item["examples"], item["version"]) == ("Theirs, again", ["pay Ann"], "3")
    assert "examples" in later.kept[0].reason


def test_a_first_sync_that_was_killed_before_it_wrote_is_completed(world: World, monkeypatch: pytest.MonkeyPatch):
    world.registry.put([tool(description="Mine", examples=["pay Ann"])])
    with monkeypatch.context() as broken:
        broken.setattr(MemoryRegistry, "put", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            world.source().put([tool(description="Theirs", version="2")])
    world.sync(tool(description="Theirs", version="2"))
    item = world.registry.items[tool().id]
    assert (item["description"], item["examples"], item["version"]) == ("Theirs", ["pay Ann"], "2")


def test_another_kind_under_an_id_is_neither_written_nor_removed(world: World):
    world.registry.put([tool(kind="agent")])
    assert world.source().put([tool()]) == {tool().id: Placed.OTHER_KIND}
    assert world.sync().prune(force=True).removed == []
    assert tool().id in world.registry.items


def test_what_is_no_longer_listed_is_reported_and_removed_on_demand(world: World):
    many = [tool(f"t{number}") for number in range(10)]
    world.sync(*many)
    gone = [many[0].id, many[1].id]
    sync = world.sync(*many[2:])
    assert sync.mark_gone(()) == gone
    assert many[0].id in world.registry.items
    assert not world.sync(*many).mark_gone(())
    sync = world.sync(*many[2:])
    assert sync.prune().removed == gone
    assert not {*gone} & world.registry.items.keys()
    assert world.book.entries("a").keys() == {one.id for one in many[2:]}


def test_more_than_a_fifth_is_removed_only_by_force(world: World):
    many = [tool(f"t{number}") for number in range(10)]
    world.sync(*many)
    sync = world.sync(*many[3:])
    assert "3 of 10" in sync.prune().refused
    assert len(world.registry.items) == 10
    assert len(sync.prune(force=True).removed) == 3


def test_a_prune_leaves_what_was_changed_by_hand(world: World):
    world.sync(tool(), tool("refund"))
    world.registry.put([tool(version="by hand")])
    pruned = world.sync().prune(force=True)
    assert pruned.removed == [tool("refund").id]
    assert [entry.id for entry in pruned.kept] == [tool().id]
    assert world.version() == "by hand"
    assert not world.book.entries("a")


def test_an_item_that_changes_while_it_is_pruned_stays(world: World, monkeypatch: pytest.MonkeyPatch):
    world.sync(tool())
    stale = world.registry.get([tool().id])
    world.registry.put([tool(version="by hand")])
    sync = world.sync()
    monkeypatch.setattr(world.registry, "get", lambda ids: stale)
    assert not sync.prune(force=True).removed
    assert world.version() == "by hand"


def test_of_two_sources_the_first_writes_and_the_second_inherits(world: World):
    world.sync(tool(version="a"))
    second = world.sync(tool(version="b"), name="b")
    assert [entry.reason for entry in second.kept] == ["comes from the source a"]
    assert world.version() == "a"
    pruned = world.sync().prune(force=True)
    assert [entry.reason for entry in pruned.kept] == ["the source b lists it, too"]
    assert world.version() == "a"
    world.sync(tool(version="b"), name="b")
    assert world.version() == "b"
    assert world.sync(name="b").prune(force=True).removed == [tool().id]


def test_what_another_source_stopped_listing_is_taken_over(world: World):
    world.sync(tool(version="a"))
    world.sync(tool(version="b"), name="b")
    world.sync()
    world.sync(tool(version="b"), name="b")
    assert world.version() == "b"
    assert not world.sync().prune(force=True).removed


DIGESTS = st.sampled_from(["", "1", "2", "3"])
ENTRIES = st.builds(TrackedEntry, DIGESTS, DIGESTS, st.booleans())


@given(
    listed=st.sampled_from("123"),
    stored=st.none() | st.sampled_from("123"),
    own=st.none() | ENTRIES,
    others=st.lists(ENTRIES, max_size=2),
)
def test_content_of_unknown_origin_is_never_overwritten(listed, stored, own, others):
    step = next_step(listed, stored, own, others, first=False)
    known = {digest for entry in [own or TrackedEntry(), *others] for digest in entry[:2]} - {""}
    if step is Step.WRITE:
        assert stored is None or (stored in known and stored != listed)
    if stored == listed:
        assert step in (Step.KEEP, Step.ELSEWHERE)


def test_digests_are_the_same_after_a_table_stored_the_item():
    assert content_digest({"a": 1.0, "b": {"c": [2.0]}, "d": None}) == content_digest({"a": 1, "b": {"c": [2]}})
    assert content_digest({"a": 1.5}) != content_digest({"a": 1})
    assert content_digest({"a": True}) != content_digest({"a": 1})
