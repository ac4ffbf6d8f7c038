"""Old versions of a function over a fake: the newest stay, and those in use."""

from hypothesis import given
from hypothesis import strategies as st

from mats.usecases.prune_versions import PruneVersions


class Versions:
    def __init__(self, numbers: list[int], used: set[int]) -> None:
        self.there, self.used = list(numbers), used

    def numbers(self) -> list[int]:
        return list(self.there)

    def in_use(self) -> set[int]:
        return self.used

    def delete(self, number: int) -> None:
        self.there.remove(number)


@given(st.sets(st.integers(1, 500)), st.sets(st.integers(1, 500), max_size=3))
def test_the_newest_three_stay_and_those_in_use_and_no_others(numbers: set[int], used: set[int]):
    versions = Versions(sorted(numbers, key=str), used)
    deleted = PruneVersions(versions=versions)()
    kept = set(versions.there)
    assert kept == numbers - set(deleted)
    assert kept == {*sorted(numbers)[-3:], *(used & numbers)}
    assert list(deleted) == sorted(deleted)
