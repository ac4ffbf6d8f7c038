"""Places for what operators trust."""

import pytest

from mats.domain.capability.capability import Id
from mats.domain.policies.policy import Ask, Order
from mats.domain.policies.rated import Rated, Trusted
from mats.domain.search.query import Filter
from tests.builders import a_profile
from tests.world import indexed

UNRATED = [Id(f"n/u{number:02}") for number in range(20)]
RATED = [Id(f"n/r{number}") for number in range(4)]


def nominated(near: float | None, *, foreign: bool = False) -> list[Id]:
    """The order after the policy, with rated ones at the end, and the unrated of this cosine; None: words alone."""
    cosine = {} if near is None else {**dict.fromkeys(UNRATED, near), **dict.fromkeys(RATED, 0.6)}
    order = Order(scores={}, cosine=cosine, k=15, ids=[*UNRATED, *RATED])
    return list(Rated().nominate(order, Trusted(RATED, foreign)).ids)


@pytest.mark.parametrize(("near", "foreign"), [(None, False), (0.6, True), (0.1, True)])
def test_where_no_cosine_tells_what_is_near_the_best_three_have_the_last_places(near, foreign):
    assert nominated(near, foreign=foreign)[:16] == [*UNRATED[:12], *RATED[:3], UNRATED[12]]


def test_of_a_crowd_that_is_as_near_four_come_before_them():
    assert nominated(0.6)[:8] == [*UNRATED[:4], *RATED]
    assert nominated(0.53) == [*UNRATED, *RATED]  # less than 90 % as near: nothing crowds


def test_where_a_rated_one_is_a_candidate_already_nothing_is_moved():
    ids = [*UNRATED[:14], RATED[0], *UNRATED[14:], *RATED[1:]]
    order = Order(scores={}, cosine=dict.fromkeys(ids, 0.6), k=15, ids=ids)
    assert list(Rated().nominate(order, Trusted(RATED, foreign=False)).ids) == ids


@pytest.mark.parametrize("foreign", [False, True])
def test_what_operators_trust_is_looked_up(foreign: bool):
    trusted = a_profile(trust=90)
    ask = Ask.of("坐标", Filter(), foreign=foreign)
    assert Rated().look(ask, indexed(trusted, a_profile(name="other")), None, None) == ({trusted.id}, foreign)
