"""One capability, and the ids that resemble an unknown one."""

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, DependencyFailed
from mats.domain.ranking.query import Filter
from mats.ports import Stored
from mats.usecases.look_up import LookUp
from tests.builders import a_profile
from tests.fakes import MemoryIndex


def look_up(*ids: str, hidden: str = "") -> LookUp:
    index = MemoryIndex()
    for id in ids:
        namespace, _, name = id.partition("/")
        profile = a_profile(namespace=namespace, name=name, visible_to=["finance"] if id == hidden else None)
        index.put([Stored(profile.model_copy(update={"rev": 1}), None)])
    return LookUp(index)


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


def test_an_id_that_the_caller_may_not_see_is_never_named():
    hidden = look_up(*KNOWN, hidden=KNOWN[0])
    for id in ("com.stripe/create_refnd", "create_refund", KNOWN[0]):
        assert KNOWN[0] not in hidden.nearest(Id(id))
        assert KNOWN[0] in hidden.nearest(Id(id), ["finance"])


def test_at_most_three_are_named():
    many = look_up(*(f"com.acme/refund-{number:03}" for number in range(200)))
    assert len(many.nearest(Id("com.acme/refund-07x"))) == 3


def test_an_index_that_fails_names_none():
    class Failing(MemoryIndex):
        def page(self, admitted: Filter, *, after: Id | None, limit: int):
            raise DependencyFailed("no answer")

    assert LookUp(Failing()).nearest(Id("a/b")) == []


def test_the_error_says_what_was_meant():
    assert str(CapabilityNotFound("a/b")) == "no capability 'a/b'"
    assert str(CapabilityNotFound("a/b", ["a/c", "a/d"])) == "no capability 'a/b'; did you mean `a/c` or `a/d`?"
