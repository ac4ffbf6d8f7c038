"""Checks before promotion, over fakes; the contract tests cover reindexing with every adapter."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.ports import Stored, Target
from mats.usecases.deadline import Progress
from mats.usecases.reindex import Reindex
from tests.builders import a_profile
from tests.fakes import MemoryProfiles, raising


@dataclass
class Shelves:
    """Indices in dicts; `loses` are ids that are acknowledged but not stored."""

    held: dict[Id, int] = field(default_factory=dict)
    loses: set[Id] = field(default_factory=set)
    promoted: list[str] = field(default_factory=list)
    filled: list[list[Id]] = field(default_factory=list)

    def current(self) -> str | None:
        return self.promoted[-1] if self.promoted else None

    def begin(self) -> Target:
        return Target("new", "fake", filling=True)

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        self.filled.append([entry.profile.id for entry in entries])
        self.held |= {e.profile.id: e.profile.rev for e in entries if e.profile.id not in self.loses}

    def revisions(self, target: Target, ids: Collection[Id]) -> Mapping[Id, int]:
        return {id: self.held[id] for id in ids if id in self.held}

    def promote(self, target: Target) -> None:
        self.promoted.append(target.name)

    def roll_back(self) -> Target:
        raise NotImplementedError

    def retire(self) -> Sequence[str]:
        raise NotImplementedError


def profiles_with(*names: str, indexed: bool = True) -> MemoryProfiles:
    profiles = MemoryProfiles()
    for name in names:
        profile = a_profile(name=name).model_copy(update={"rev": 1, "indexed_rev": int(indexed)})
        profiles.save([Stored(profile)])
    return profiles


def test_an_incomplete_index_is_not_promoted():
    profiles = profiles_with("a", "b", "c")
    shelves = Shelves(loses={a_profile(name="b").id})
    with pytest.raises(DependencyFailed, match="new lacks 1 of the profiles; run it again"):
        list(Reindex(profiles=profiles, generations=shelves, page=2)())
    assert shelves.promoted == []
    shelves.loses.clear()
    list(Reindex(profiles=profiles, generations=shelves, page=2)())
    assert shelves.promoted == ["new"]
    assert [a_profile(name="b").id] in shelves.filled


def test_an_unacknowledged_revision_does_not_block_promotion():
    shelves = Shelves(loses={a_profile(name="a").id})
    list(Reindex(profiles=profiles_with("a", indexed=False), generations=shelves)())
    assert shelves.promoted == ["new"]


def test_every_step_is_a_place_to_go_on_from():
    profiles, ids = profiles_with("a", "b", "c", "d"), [a_profile(name=name).id for name in "abcd"]
    shelves, at = Shelves(), Progress({})
    for _ in range(8):
        assert shelves.promoted == []
        at = next(Reindex(profiles=profiles, generations=shelves, page=1)(at.after, at.stage))
    assert list(Reindex(profiles=profiles, generations=shelves, page=1)(at.after, at.stage)) == []
    assert shelves.promoted == ["new"]
    assert shelves.filled == [[id] for id in ids]


def test_a_later_revision_than_the_profile_has_is_left_alone():
    shelves = Shelves(held={a_profile(name="a").id: 7})
    list(Reindex(profiles=profiles_with("a"), generations=shelves)())
    assert shelves.held == {a_profile(name="a").id: 7}


def test_a_store_that_fails_half_way_leaves_the_old_index_in_service(monkeypatch: pytest.MonkeyPatch):
    profiles, shelves = profiles_with("a", "b"), Shelves()
    steps = Reindex(profiles=profiles, generations=shelves, page=1)()
    next(steps)
    monkeypatch.setattr(profiles, "get", raising(DependencyFailed("the table did not answer")))
    with pytest.raises(DependencyFailed, match="table"):
        list(steps)
    assert shelves.promoted == []
