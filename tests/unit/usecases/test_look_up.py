"""One capability, and the ids that resemble an unknown one."""

from itertools import chain

import pytest

from mats.domain.capability.capability import Id, Kind, parts
from mats.domain.errors import DependencyFailed
from mats.domain.search.query import Filter
from mats.usecases.look_up import LookUp
from tests.builders import a_profile
from tests.fakes import MemoryIndex, raising
from tests.world import indexed


def pages(index, *, limit, wanted=lambda profile: True, audiences=()) -> list[list[str]]:
    browse, after, found = LookUp(index).browse, None, []
    while True:
        page = browse(Filter(audiences=frozenset(audiences)), wanted, after=after, limit=limit)
        found.append([profile.name for profile in page.profiles])
        after = page.following
        if after is None:
            return found


NAMES = [f"n{number:03}" for number in range(250)]


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_the_pages_together_are_everything_once_and_in_order(limit):
    found = pages(indexed(*(a_profile(name=name) for name in NAMES)), limit=limit)
    assert list(chain(*found)) == NAMES
    assert all(len(page) == limit for page in found[:-1])


def test_pages_are_filled_with_wanted_profiles_at_any_position():
    profiles = [a_profile(name=name, kind=Kind.AGENT if name[-1] == "9" else Kind.TOOL) for name in NAMES]
    found = pages(indexed(*profiles), limit=10, wanted=lambda profile: profile.kind is Kind.AGENT)
    assert [len(page) for page in found] == [10, 10, 5]


def test_a_call_reads_a_bounded_number_and_the_next_resumes():
    names = [f"n{number:04}" for number in range(2_300)]
    one = a_profile()
    index = indexed(*(one.model_copy(update={"name": name}) for name in names))
    found = pages(index, limit=5, wanted=lambda profile: profile.name == names[-1])
    assert found == [[], [], [names[-1]]]


def test_an_invisible_capability_is_on_no_page_and_in_no_cursor():
    profiles = [a_profile(name=name, visible_to=("finance",) if name > "n100" else None) for name in NAMES]
    index = indexed(*profiles)
    assert list(chain(*pages(index, limit=30))) == NAMES[:101]
    assert list(chain(*pages(index, limit=30, audiences=["finance"]))) == NAMES
    nothing = LookUp(index).browse(Filter(), lambda profile: False, after=None, limit=5)
    assert nothing.following is None


def test_a_capability_just_hidden_is_left_out_although_search_finds_it(monkeypatch):
    index = indexed(*(a_profile(name=name) for name in ("a", "b")))
    hidden = a_profile(name="b", visible_to=("finance",))
    monkeypatch.setattr(index, "fetch", lambda ids: {a_profile(name="a").id: a_profile(name="a"), hidden.id: hidden})
    page = LookUp(index).browse(Filter(), lambda profile: True, after=None, limit=5)
    assert [profile.name for profile in page.profiles] == ["a"]


def look_up(*ids: str, hidden: str = "") -> LookUp:
    profiles = []
    for id in ids:
        namespace, name = parts(Id(id))
        profiles.append(a_profile(namespace=namespace, name=name, visible_to=["finance"] if id == hidden else None))
    return LookUp(indexed(*profiles))


KNOWN = ("com.stripe/create_refund", "com.stripe/create_customer", "com.acme/refund", "org.maps/geocode")


@pytest.mark.parametrize(
    ("id", "nearest"),
    [
        ("com.stripe/create_refnd", ["com.stripe/create_refund"]),
        ("create_refund", ["com.stripe/create_refund"]),
        ("com.strype/create_refund", ["com.stripe/create_refund"]),
        ("com.acme/refunds", ["com.acme/refund"]),
        ("org.maps/geocod", ["org.maps/geocode"]),
        ("zz.nothing/like-it", []),
        ("", []),
        ("/", []),
        ("x" * 10_000, []),
    ],
)
def test_the_nearest_ids_are_named(id, nearest):
    assert list(look_up(*KNOWN).nearest(Id(id)))[:1] == nearest


@pytest.mark.parametrize("id", ["com.stripe/create_refnd", "stripe/create_refund"])
def test_only_ids_about_as_near_as_the_nearest_are_named(id):
    near = look_up(*KNOWN, "com.stripe/create_refills", "com.paypal/create_refund").nearest(Id(id))
    assert list(near) == ["com.stripe/create_refund", "com.paypal/create_refund"]


def test_an_id_that_the_caller_may_not_see_is_never_named():
    hidden = look_up(*KNOWN, hidden=KNOWN[0])
    for id in ("com.stripe/create_refnd", "create_refund", KNOWN[0]):
        assert KNOWN[0] not in hidden.nearest(Id(id))
        assert KNOWN[0] in hidden.nearest(Id(id), ["finance"])


def test_an_index_that_fails_names_none(monkeypatch):
    monkeypatch.setattr(MemoryIndex, "page", raising(DependencyFailed("no answer")))
    assert LookUp(MemoryIndex()).nearest(Id("a/b")) == []
