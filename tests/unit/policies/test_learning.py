"""How far what callers reported moves candidates."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from mats.domain.capability.capability import Id
from mats.domain.learning.remembered import Near, Remembered
from mats.domain.policies.memory import Memory
from mats.domain.policies.policy import Ask, Order
from mats.domain.search.candidate import Candidate
from mats.domain.search.query import Filter
from tests.builders import SCORING, a_profile, rank

MEMORY = Memory(None)
ORDER = [Id(f"n/t{number:02}") for number in range(20)]
FAR = Id("n/far")


VOTED = {"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.9}


@pytest.mark.parametrize(
    ("cosines", "rise", "alone", "order"),
    [
        ((0.35, 0.34, 0.33, 0.32), 2, 0.0, "adbc"),
        ((0.35, 0.34, 0.33, 0.32), 9, 0.0, "dabc"),
        ((0.35, 0.34, 0.33, 0.32), math.inf, 0.9, "dabc"),
        ((0.60, 0.34, 0.33, 0.32), 9, 0.0, "adbc"),
        ((0.11, 0.10, 0.09, 0.08), 9, 0.0, "abcd"),
    ],
    ids=["two places", "more of them", "what the caller used itself", "above no match", "nothing for `none`"],
)
def test_what_others_used_rises_by_so_many_places_above_no_match_and_not_for_none(cosines, rise, alone, order):
    found = [
        Candidate(
            profile=a_profile(name=name), bm25=None, cosine=cosine, shift=shift, alone=alone if shift else 0.0,
            rise=rise if shift else 0 if rise < math.inf else rise,
        )
        for (name, shift), cosine in zip(VOTED.items(), cosines, strict=True)
    ]  # fmt: skip
    assert "".join(each.candidate.profile.name for each in rank(found, {}, MEMORY)) == order


@dataclass
class Requests:
    """A memory with one request, which two callers sent."""

    asked: list[int] = field(default_factory=list)
    used: frozenset[Id] = frozenset({FAR})
    later: str = ""  # When a third caller, alone, sent it as well

    def nearest(self, vector: object, *, depth: int, without: Collection[str] = ()) -> list[Near]:
        self.asked.append(depth)
        about = {"text": "", "audiences": frozenset[str](), "used": self.used}
        sent = {"one": "2026-01-01", "two": "2026-01-01"} | ({"three": self.later} if self.later else {})
        return [Near(0.9, Remembered(query_id=caller, caller=caller, at=at, **about)) for caller, at in sent.items()]

    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> dict[Id, int]:
        return dict.fromkeys(self.used, 0)


def test_what_others_alone_used_is_no_candidate_from_beyond_what_was_found():
    memory = Memory(Requests())
    order = Order(scores={id: 1 - n / 100 for n, id in enumerate(ORDER)}, cosine={}, k=15, ids=ORDER)
    recalled = memory.look(Ask.of("give money back", Filter(), caller="me"), None, [1.0], None)
    assert recalled is not None
    assert FAR not in memory.nominate(order, recalled).ids


@pytest.mark.parametrize(("replaced", "moves"), [("2025-12-31", True), ("2026-01-02", False)])
def test_later_reports_wake_no_votes_on_a_text_that_was_replaced(replaced, moves):
    since = {"first_registered": f"{replaced}T00:00:00+00:00"}
    profiles = [a_profile(name=name).model_copy(update=since) for name in "ab"]
    candidates = [Candidate(profile=each, bm25=None, cosine=0.3) for each in profiles]
    ids = [each.id for each in profiles]
    requests = Requests(used=frozenset({ids[1]}), later="2026-01-03")
    memory, ask = Memory(requests), Ask.of("give money back", Filter(), caller="me")
    recalled = memory.look(ask, None, [1.0], None)
    memory.nominate(Order(scores=dict.fromkeys(ids, 1.0), cosine={}, k=15, ids=ids), recalled)
    shifted = memory.shift(candidates, recalled, ask, SCORING)
    assert (shifted[1].shift > 0) is moves


def test_twice_as_many_requests_are_read_as_may_vote():
    requests = Requests()
    Memory(requests).look(Ask.of("give money back", Filter()), None, [1.0], None)
    assert requests.asked[0] == 40
