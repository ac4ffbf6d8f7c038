"""Large products on two cores."""

import threading

import pytest

from mats.adapters.sqlite import arrays as halves
from mats.adapters.sqlite.arrays import in_halves

pytestmark = pytest.mark.usefixtures("two_cores")


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(halves, "cores", lambda: 2)


def runs(size: int, least: int) -> list[tuple[int, int, str]]:
    found = []
    in_halves(lambda start, end: found.append((start, end, threading.current_thread().name)), size, least=least)
    return sorted(found)


@pytest.mark.parametrize("size", [0, 1, 7])
def test_small_work_stays_in_its_thread(size):
    assert runs(size, 8) == [(0, size, threading.current_thread().name)]


def test_large_work_runs_in_two_threads():
    (start, middle, one), (again, end, other) = runs(9, 8)
    assert (start, middle, again, end) == (0, 4, 4, 9)
    assert one != other


def test_who_comes_while_another_has_the_second_thread_works_alone():
    inner = []
    in_halves(lambda start, end: inner.append(runs(10, 2)), 2, least=2)
    assert [[(start, end) for start, end, _ in each] for each in inner] == [[(0, 10)]] * 2


def test_an_error_of_either_half_is_raised_after_both():
    for failing in (0, 4):
        ended = []

        def work(start: int, end: int, failing: int = failing, ended: list[int] = ended) -> None:
            ended.append(start)
            if start == failing:
                raise ValueError(start)

        with pytest.raises(ValueError, match=str(failing)):
            in_halves(work, 8, least=8)
        assert sorted(ended) == [0, 4]
    assert len(runs(8, 8)) == 2
