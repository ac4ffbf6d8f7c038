"""Contract of the ports `SourceBook` and `SyncTarget`."""

from pathlib import Path

import pytest

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.sources import SqliteSources
from mats.domain.capability.capability import Id
from mats.domain.errors import PreconditionFailed
from mats.domain.profile.sync import SourceKind, SourceRun, TrackedEntry, TrackedSource
from mats.ports import SourceBook, SyncTarget
from tests.builders import a_registration

A = TrackedSource(name="a", kind=SourceKind.DOCUMENT, location=("https://api.example.com/openapi.json",))
B = TrackedSource(
    name="b", kind=SourceKind.MCP, location=("npx", "-y", "server"), namespace="com.acme", live=True, timeout_s=5
)
ODD = {"descriptor": {"limit": 1.5, "free": 1.0, "none": None}}
PAY, REFUND = Id("com.acme/pay"), Id("com.acme/refund")


def test_sources_are_listed_in_order_of_name_as_they_were_added(source_book: SourceBook):
    for source in (B, A):
        source_book.add(source)
    assert [state.source for state in source_book.all()] == [A, B]
    assert {(state.run, state.entries, state.gone) for state in source_book.all()} == {(SourceRun(), 0, 0)}


def test_a_source_that_is_added_again_is_replaced_and_keeps_its_entries(source_book: SourceBook):
    source_book.add(A)
    source_book.record("a", {PAY: TrackedEntry("1")})
    source_book.finish("a", SourceRun(succeeded="2026-01-01T00:00:00+00:00"))
    source_book.add(TrackedSource(name="a", kind=A.kind, location=A.location, namespace="com.other"))
    (state,) = source_book.all()
    assert (state.source.namespace, state.entries) == ("com.other", 1)
    assert state.run.succeeded


def test_entries_are_replaced_and_forgotten_one_by_one(source_book: SourceBook):
    source_book.add(A)
    source_book.record("a", {PAY: TrackedEntry("1"), REFUND: TrackedEntry("2", "1", gone=True)})
    assert source_book.entries("a") == {PAY: TrackedEntry("1"), REFUND: TrackedEntry("2", "1", gone=True)}
    assert [(state.entries, state.gone) for state in source_book.all()] == [(2, 1)]
    source_book.record("a", {PAY: None, REFUND: TrackedEntry("3")})
    assert source_book.entries("a") == {REFUND: TrackedEntry("3")}


def test_entries_of_others_are_named_by_their_source(source_book: SourceBook):
    source_book.record("a", {PAY: TrackedEntry("1"), REFUND: TrackedEntry("2")})
    source_book.record("b", {PAY: TrackedEntry("3", gone=True)})
    assert source_book.others("b", [PAY, REFUND]) == {PAY: {"a": TrackedEntry("1")}, REFUND: {"a": TrackedEntry("2")}}
    assert source_book.others("a", [PAY, REFUND]) == {PAY: {"b": TrackedEntry("3", gone=True)}}
    assert source_book.others("a", []) == {}


def test_a_removed_source_leaves_nothing(source_book: SourceBook):
    source_book.add(A)
    source_book.record("a", {PAY: TrackedEntry("1")})
    source_book.finish("a", SourceRun(error="is down"))
    assert source_book.remove("a")
    assert not source_book.remove("a")
    assert not source_book.all()
    assert not source_book.entries("a")
    source_book.add(A)
    assert source_book.all()[0].run == SourceRun()


def test_each_target_has_its_own_entries_and_outcomes(tmp_path: Path):
    database = Database(tmp_path / "mats.db")
    here, table = SqliteSources(database), SqliteSources(database, "mats-registry")
    here.add(A)
    here.record("a", {PAY: TrackedEntry("1")})
    table.finish("a", SourceRun(error="throttled"))
    assert [(state.entries, state.run.error) for state in here.all()] == [(1, "")]
    assert [(state.entries, state.run.error) for state in table.all()] == [(0, "throttled")]
    table.remove("a")
    assert not here.entries("a")
    database.close()


@pytest.mark.parametrize("changed", [a_registration(tags=("b",)), a_registration(**ODD, tags=("a",), version="2")])
def test_an_item_is_removed_only_as_it_was_read(registry: SyncTarget, changed):
    written = a_registration(**ODD, tags=("a",))
    registry.put([written])
    before = registry.get([written.id])[written.id]
    registry.put([changed])
    with pytest.raises(PreconditionFailed):
        registry.remove_same(written.id, before)
    assert registry.remove_same(written.id, registry.get([written.id])[written.id])
    assert not registry.get([written.id])
    assert not registry.remove_same(written.id, before)
