"""Remembered requests that are a round trip away: likely candidates are fetched meanwhile, and answers are the same."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile import Profile
from mats.domain.query import Query
from mats.domain.remembered import Remembered
from mats.evaluation.benchmarks.attacks.false_memories import ListedMemory
from mats.ports import Stored
from mats.usecases.discover import Discover
from mats.usecases.recall import Recall
from tests.builders import a_discover, a_profile
from tests.fakes import FakeEncoder, MemoryIndex

ENCODER = FakeEncoder()
PROFILES = [a_profile(name=f"tool-{n:02}", description=f"send word {n} to a customer") for n in range(40)]
QUERY = Query(query="send word to a customer")


class CountingIndex(MemoryIndex):
    """Notes what is fetched; the first reads fail."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.failures, self.fetched = failures, list[set[Id]]()

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        self.fetched.append(set(ids))
        if len(self.fetched) <= self.failures:
            raise DependencyFailed("the index is busy")
        return super().fetch(ids)


def remembered(number: int, caller: str) -> Remembered:
    used = frozenset([PROFILES[number].id])
    return Remembered(query_id=f"{number} {caller}", text="", caller=caller, audiences=frozenset(), at="", used=used)


def discover_over(index: MemoryIndex, *, remote: bool) -> Discover:
    index.put(
        [
            Stored(profile.model_copy(update={"rev": 1}), ENCODER.encode_query(profile.source.description))
            for profile in PROFILES
        ]
    )
    near, far = ENCODER.encode_query(QUERY.query), ENCODER.encode_query("nothing of the kind")
    kept = [(near, remembered(35, caller)) for caller in ("ann", "bob")]
    kept += [(far, remembered(number, caller)) for number in range(5) for caller in ("ann", "bob")]
    discover = a_discover(index, encoder=ENCODER)
    recall = Recall(memory=ListedMemory(kept), scale=discover.scoring.scale, remote=remote)
    return replace(discover, retrieve=replace(discover.retrieve, recall=recall))


def ranked(discover: Discover) -> tuple[list[tuple[Id, float]], tuple[str, ...]]:
    shortlist = discover(QUERY, caller="zoe")
    return [(result.candidate.profile.id, result.score) for result in shortlist.ranked], shortlist.degraded


@pytest.mark.parametrize("failures", [0, 1])
def test_answers_are_the_same_even_if_the_early_read_fails(failures: int):
    here, away = CountingIndex(), CountingIndex(failures)
    assert ranked(discover_over(away, remote=True)) == ranked(discover_over(here, remote=False))
    assert PROFILES[35].id in here.fetched[0]


def test_what_was_fetched_early_is_not_fetched_again():
    index = CountingIndex()
    ranked(discover_over(index, remote=True))
    early, *later = index.fetched
    assert len(early) == 20
    assert early.isdisjoint({id for each in later for id in each})
