"""Contract of the port `Listing`."""

from mats.domain.profile.profile import Status
from mats.ports import Stored
from tests.builders import a_profile, a_registration
from tests.contract.conftest import LocalStores


def always(etag: str | None) -> bool:
    return True


def revision(rev: int, name: str = "pay", **changes: object) -> Stored:
    return Stored(a_profile(name=name).model_copy(update={"rev": rev, **changes}))


def test_registered_ids_come_in_order_with_their_kinds(stores: LocalStores):
    for name, kind in (("b", "agent"), ("a", "tool"), ("c", "skill")):
        stores.registry.put_if(always, a_registration(name=name, kind=kind))
    assert list(stores.listing.kinds().items()) == [
        ("com.acme.pay/a", "tool"),
        ("com.acme.pay/b", "agent"),
        ("com.acme.pay/c", "skill"),
    ]


def test_every_write_changes_the_version(stores: LocalStores):
    versions = [stores.listing.version()]
    for write in (
        lambda: stores.registry.put_if(always, a_registration(name="pay")),
        lambda: stores.index_revision(revision(1)),
        lambda: stores.announce(revision(1).profile.id),
        lambda: stores.give_up("a bug"),
        lambda: stores.registry.remove_if(always, a_registration(name="pay").id),
    ):
        write()
        versions.append(stores.listing.version())
        assert stores.listing.version() == versions[-1]
    assert len(set(versions)) == len(versions)


def test_changes_from_the_start_are_all_profiles_indexed_or_not(stores: LocalStores):
    stores.index_revision(revision(1, "a"))
    stores.profiles.save([revision(1, "b")])
    assert sorted(stores.listing.changes(None).ids) == ["com.acme.pay/a", "com.acme.pay/b"]


def test_changes_since_a_position_are_the_revisions_indexed_later(stores: LocalStores):
    stores.index_revision(revision(1, "a"))
    position, _ = stores.listing.changes(None)
    assert stores.listing.changes(position).ids == []
    stores.index_revision(revision(1, "b"))
    stores.index_revision(revision(2, "a", status=Status.DELETED))
    changes = stores.listing.changes(position)
    assert sorted(set(changes.ids)) == ["com.acme.pay/a", "com.acme.pay/b"]
    assert stores.listing.changes(changes.position).ids == []


def test_a_profile_is_listed_with_whether_the_index_has_it(stores: LocalStores):
    stores.index_revision(revision(1, "a"))
    stores.profiles.save([revision(2, "a", endpoint="https://new.example"), revision(1, "b")])
    listed = {profile.id: (profile.rev, indexed) for profile, indexed in stores.listing.profiles(["com.acme.pay/a"])}
    assert listed == {"com.acme.pay/a": (2, False)}
    stores.profiles.mark_indexed({revision(1, "b").profile.id: 1})
    ((profile, indexed),) = stores.listing.profiles([revision(1, "b").profile.id])
    assert (profile.rev, indexed) == (1, True)
