"""Reported outcomes in the score of an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.learning.reliability import Tally
from mats.domain.ranking.query import Query
from mats.domain.shortlist.rank import Shortlist
from mats.usecases.discover import Discover
from tests import world
from tests.builders import a_profile
from tests.fakes import raising
from tests.world import GEOCODE, REFUND, indexed

TWIN = a_profile(name="reimburse", description="give the money back to customers")
QUERY = Query(query="give money back to a customer")


def discover_over(*profiles, tallies) -> Discover:
    return replace(world.discover_over(indexed(*profiles)), tallies=tallies)


def reported(*tallies: Tally, on=REFUND):
    def read(ids: Sequence[Id]) -> Mapping[Id, Sequence[Tally]]:
        return {on.id: tallies} if on.id in ids else {}

    return read


def order(shortlist: Shortlist) -> list[str]:
    return [result.candidate.profile.name for result in shortlist.ranked]


def failures(*callers: str, count: float = 10) -> list[Tally]:
    return [Tally(caller=caller, failures=count) for caller in callers]


def test_a_capability_that_keeps_failing_for_many_sinks():
    plain = discover_over(REFUND, TWIN, tallies=None)(QUERY)
    assert order(plain) == ["refund", "reimburse"]
    many = reported(*failures("ann", "bob", "cleo", "dan", "eve", "fay", "gil"))
    assert order(discover_over(REFUND, TWIN, tallies=many)(QUERY, caller="zoe")) == ["reimburse", "refund"]


def test_failures_of_one_caller_sink_it_for_that_caller_and_for_nobody_else():
    discover = discover_over(REFUND, TWIN, tallies=reported(*failures("eve", count=100)))
    plain = discover_over(REFUND, TWIN, tallies=None)(QUERY)
    assert order(discover(QUERY, caller="eve")) == ["reimburse", "refund"]
    assert [r.score for r in discover(QUERY, caller="zoe").ranked] == [r.score for r in plain.ranked]


def test_unread_reports_degrade_the_answer_and_nothing_else():
    shortlist = discover_over(REFUND, GEOCODE, tallies=raising(DependencyFailed("no answer")))(QUERY)
    assert "reliability" in shortlist.degraded
    assert order(shortlist) == order(discover_over(REFUND, GEOCODE, tallies=None)(QUERY))
