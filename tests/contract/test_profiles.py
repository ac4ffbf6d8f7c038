"""Contract of the port `ProfileStore`."""

from array import array
from concurrent.futures import ThreadPoolExecutor

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import Profile, Status
from mats.ports import ProfileStore, Stored
from tests.builders import a_profile
from tests.contract.conftest import Aging


def revision(rev: int, *, name: str = "pay", vector: "array[float] | None" = None, **changes) -> Stored:
    return Stored(a_profile(name=name).model_copy(update={"rev": rev, **changes}), vector)


@pytest.mark.parametrize("vector", [array("f", [0.1, -0.7, 1e-8]), None], ids=["vector", "none"])
def test_a_profile_and_its_vector_are_read_back_to_the_last_bit(profiles: ProfileStore, vector):
    kept = revision(1, vector=vector)
    assert profiles.save([kept]) in ([], ())
    assert profiles.get([kept.profile.id]) == {kept.profile.id: kept}


def test_a_revision_is_written_only_over_its_predecessor(profiles: ProfileStore):
    first, id = revision(1, endpoint="first"), revision(1).profile.id
    profiles.save([first])
    for late in (revision(1, endpoint="again"), revision(3, endpoint="leap")):
        assert list(profiles.save([late])) == [id]
    assert profiles.get([id])[id].profile.endpoint == "first"


def test_a_late_revision_does_not_hold_up_the_others(profiles: ProfileStore):
    profiles.save([revision(1, name="a")])
    assert list(profiles.save([revision(1, name="a"), revision(1, name="b")])) == [revision(1, name="a").profile.id]
    assert revision(1, name="b").profile.id in profiles.get([revision(1, name="b").profile.id])


def test_of_many_writers_of_one_revision_exactly_one_succeeds(profiles: ProfileStore):
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda n: profiles.save([revision(1, endpoint=str(n))]), range(8)))
    assert sum(not outcome for outcome in outcomes) == 1


def test_earlier_revisions_are_stored_with_their_causes(profiles: ProfileStore):
    for rev in (1, 2, 3):
        profiles.save([revision(rev, endpoint=f"e{rev}")])
    assert [(v.rev, v.endpoint) for v in profiles.versions(revision(1).profile.id)] == [(1, "e1"), (2, "e2")]


def test_indexed_is_noted_of_the_current_revision_only(profiles: ProfileStore):
    id = revision(1).profile.id
    profiles.save([revision(1)])
    profiles.mark_indexed({id: 1})
    assert profiles.get([id])[id].profile.indexed_rev == 1
    profiles.save([revision(2, indexed_rev=0)])
    profiles.mark_indexed({id: 1})
    profiles.mark_indexed({Id("com.acme/unknown"): 1})
    assert profiles.get([id])[id].profile.indexed_rev == 0


def test_what_was_removed_from_a_namespace_is_found_until_it_is_back_or_erased(profiles: ProfileStore):
    gone = {"status": Status.DELETED, "source": None}
    for name in ("a", "b", "c"):
        profiles.save([revision(1, name=name, endpoint=name), revision(1, name=f"{name}2")])
        profiles.save([revision(2, name=name, **gone)])
    namespace = revision(1).profile.namespace
    assert sorted(profile.endpoint for profile in profiles.removals(namespace)) == ["a", "b", "c"]
    profiles.save([revision(3, name="b", endpoint="back")])
    profiles.erase(revision(1, name="c").profile.id)
    assert [profile.endpoint for profile in profiles.removals(namespace)] == ["a"]
    assert profiles.removals(f"{namespace}.below") == profiles.removals("com") == []


@pytest.mark.parametrize("namespace", ["%" * 700, "~" * 2_048], ids=["escaped", "the longest"])
def test_a_key_that_is_longer_than_that_of_its_item_is_stored_listed_and_removed(
    profiles: ProfileStore, namespace: str
):
    bad = Profile(namespace=namespace, name="x" * 1_024, status=Status.REJECTED, rev=1)
    profiles.save([Stored(bad)])
    assert profiles.get([bad.id])[bad.id].profile == bad
    assert list(profiles.ids()) == [bad.id]
    gone = bad.model_copy(update={"status": Status.DELETED, "rev": 2})
    assert not profiles.save([Stored(gone)])
    assert list(profiles.removals(namespace)) == [bad]


def test_tombstones_are_stored_and_listed(profiles: ProfileStore):
    profiles.save([revision(1, name="b", status=Status.DELETED, source=None), revision(1, name="a")])
    assert [id.rpartition("/")[2] for id in profiles.ids()] == ["a", "b"]


def test_ids_go_on_after_any_of_them_even_a_removed_one(profiles: ProfileStore):
    namespaces = [f"com.n{n % 7}" for n in range(40)]
    profiles.save([
        Stored(a_profile(namespace=namespace, name=f"tool {n}").model_copy(update={"rev": 1}))
        for n, namespace in enumerate(namespaces)
    ])  # fmt: skip
    every = list(profiles.ids())
    assert len(every) == len(set(every)) == 40
    for place in (0, 17, 38, 39):
        assert list(profiles.ids(after=every[place])) == every[place + 1 :]


def test_superseded_versions_expire_and_the_current_one_never(aging: Aging):
    (profiles, clock), id = aging, revision(1).profile.id
    profiles.save([revision(1, endpoint="first")])
    clock.time = "2026-01-15T00:00:00+00:00"
    profiles.save([revision(2, endpoint="second")])
    clock.time = "2026-01-20T00:00:00+00:00"
    profiles.save([revision(3, endpoint="third")])
    assert [version.endpoint for version in profiles.versions(id)] == ["first", "second"]
    clock.time = "2026-01-25T00:00:01+00:00"
    assert [version.endpoint for version in profiles.versions(id)] == ["second"]
    clock.time = "2027-01-01T00:00:00+00:00"
    assert profiles.versions(id) == []
    assert profiles.get([id])[id].profile.endpoint == "third"
    assert profiles.save([revision(4)]) in ([], ())
    assert [version.rev for version in profiles.versions(id)] == [3]


def test_versions_are_erased_behind_a_tombstone_that_takes_no_late_revision(profiles: ProfileStore):
    id = revision(1).profile.id
    profiles.save([revision(1, name="other")])
    profiles.save([revision(1, endpoint="first")])
    profiles.save([revision(2, endpoint="second")])
    with pytest.raises(DependencyFailed):
        profiles.erase(id)
    assert len(profiles.versions(id)) == 1

    profiles.save([revision(3, status=Status.DELETED, source=None)])
    assert profiles.erase(id) == 2
    assert profiles.versions(id) == []
    for late in (1, 2, 3):
        assert list(profiles.save([revision(late, endpoint="late")])) == [id]
    assert profiles.get([id])[id].profile.status is Status.DELETED
    assert profiles.versions(id) == []
    assert profiles.erase(id) == 0
    assert profiles.erase(Id("com.acme/never there")) == 0

    assert profiles.save([revision(4, endpoint="registered again")]) in ([], ())
    assert profiles.get([id])[id].profile.endpoint == "registered again"
    assert len(profiles.versions(revision(1, name="other").profile.id)) == 0
