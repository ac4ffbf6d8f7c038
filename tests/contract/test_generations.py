"""Contract of the port `Generations`: no failed query, no lost write, also after a rollback."""

from dataclasses import replace

import pytest

from mats.domain.errors import NotPermitted, NotPossible
from mats.domain.profile.profile import Status
from mats.domain.search.query import Filter
from tests.contract.conftest import Renewable
from tests.contract.test_index import entry, lexical, tombstone


def found(renewable: Renewable, term: str = "words") -> set[str]:
    return set(lexical(renewable.index, term, depth=50))


def start(renewable: Renewable, count: int = 10) -> set[str]:
    names = {f"tool-{n}" for n in range(count)}
    renewable.save(*[entry(name, "words") for name in sorted(names)])
    return names


def test_everything_is_found_while_and_after_an_index_is_made_anew(renewable: Renewable):
    names = start(renewable)
    looked_at = 0
    for step in renewable.reindex():
        looked_at += step.counts["profiles"]
        assert found(renewable) == names
    assert looked_at == len(names)
    assert found(renewable) == names
    hits = renewable.index.neural(entry("tool-3", "words").vector, Filter(), depth=20)
    assert {id.rpartition("/")[2] for id in hits} == names


def test_writes_that_come_meanwhile_are_not_lost(renewable: Renewable):
    names = start(renewable)
    steps = renewable.reindex()
    next(steps)
    renewable.save(entry("late", "words"))
    renewable.save(entry("tool-1", "words changed", rev=2), entry("tool-9", "words changed", rev=2))
    renewable.save(tombstone("tool-0", rev=2), tombstone("tool-8", rev=2))
    list(steps)
    assert found(renewable) == names - {"tool-0", "tool-8"} | {"late"}
    assert found(renewable, "changed") == {"tool-1", "tool-9"}


def test_a_saved_revision_that_is_not_yet_indexed_is_not_missing(renewable: Renewable):
    start(renewable, 3)
    renewable.profiles.save([entry("tool-1", "words changed", rev=2)])
    list(renewable.reindex())
    renewable.index.put([entry("tool-1", "words changed", rev=2)])
    assert found(renewable, "changed") == {"tool-1"}


def test_an_interrupted_reindex_resumes_without_repeated_writes(renewable: Renewable):
    names = start(renewable)
    steps = renewable.reindex()
    written = next(steps).counts["written"]
    del steps
    written += sum(step.counts["written"] for step in renewable.reindex())
    assert written == len(names)
    assert found(renewable) == names


def test_an_index_can_be_made_anew_again_and_again(renewable: Renewable):
    names = start(renewable, 3)
    for _ in range(2):
        list(renewable.reindex())
        assert found(renewable) == names


def test_a_capability_deleted_before_a_reindex_stays_deleted(renewable: Renewable):
    start(renewable, 3)
    renewable.save(tombstone("tool-1", rev=2))
    list(renewable.reindex())
    assert found(renewable) == {"tool-0", "tool-2"}
    renewable.index.put([entry("tool-1", "words")])
    assert found(renewable) == {"tool-0", "tool-2"}
    assert renewable.profiles.get([entry("tool-1").profile.id]).popitem()[1].profile.status is Status.DELETED


IN_AWS = pytest.param("aws", marks=pytest.mark.server)


@pytest.mark.parametrize("renewable", ["files", IN_AWS], indirect=True)
class TestTheWayBack:
    def test_the_index_before_has_missed_nothing(self, renewable: Renewable):
        names = start(renewable)
        before = renewable.generations.current()
        list(renewable.reindex())
        assert renewable.generations.current() != before
        renewable.save(entry("late", "words"), entry("tool-1", "words changed", rev=2), tombstone("tool-0", rev=2))
        assert renewable.generations.roll_back().name == renewable.generations.current() == before
        assert found(renewable) == names - {"tool-0"} | {"late"}
        assert found(renewable, "changed") == {"tool-1"}

    def test_there_is_no_current_index_before_the_first(self, renewable: Renewable):
        start(renewable, 1)
        with pytest.raises(NotPossible, match="no index before"):
            renewable.generations.roll_back()

    def test_a_new_one_after_it_is_another(self, renewable: Renewable):
        start(renewable, 2)
        list(renewable.reindex())
        second = renewable.generations.current()
        renewable.generations.roll_back()
        list(renewable.reindex())
        assert renewable.generations.current() not in (second, None)

    def test_a_retired_index_is_deleted_and_gets_no_writes(self, renewable: Renewable):
        names = start(renewable, 2)
        first = renewable.generations.current()
        list(renewable.reindex())
        assert list(renewable.generations.retire()) == [first]
        renewable.save(entry("late", "words"))
        assert found(renewable) == names | {"late"}
        assert list(renewable.generations.retire()) == []

    def test_two_that_start_at_once_agree_on_the_first_index(self, renewable: Renewable):
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(4) as pool:
            lists = list(pool.map(lambda _: tuple(renewable.generations.writable()), range(4)))
        assert len(set(lists)) == 1
        start(renewable, 1)
        assert renewable.generations.current() == lists[0][0].name


@pytest.mark.parametrize("renewable", [IN_AWS], indirect=True)
class TestInADomain:
    def test_a_lost_index_is_created_again_by_the_next_write(self, renewable: Renewable):
        start(renewable, 2)
        renewable.generations.domain.drop("capabilities-1")
        assert found(renewable) == set()
        renewable.save(entry("late", "words"))
        assert found(renewable) == {"late"}
        hits = renewable.index.neural(entry("late", "words").vector, Filter(), depth=5)
        assert list(hits.values()) == [pytest.approx(1)]
        assert renewable.generations.current() == "capabilities-1"

    def test_settings_of_another_encoder_write_nothing(self, renewable: Renewable):
        start(renewable, 1)
        renewable.generations.record()
        other = replace(renewable.generations, encoder="other")
        with pytest.raises(NotPermitted, match="MATS_ENCODER"):
            replace(renewable.index, targets=other.writable).put([entry("tool-0", "words", rev=2)])
