"""The cache of the vectors of queries."""

from array import array
from concurrent.futures import ThreadPoolExecutor

from mats.usecases.retrieve import QueryVectors


def vector(number: float) -> array:
    return array("f", [number])


def test_the_vector_used_least_recently_is_dropped():
    vectors = QueryVectors(most=2)
    vectors.put("e", "a", vector(1))
    vectors.put("e", "b", vector(2))
    assert vectors.get("e", "a") == vector(1)
    vectors.put("e", "c", vector(3))
    assert [vectors.get("e", text) for text in "abc"] == [vector(1), None, vector(3)]


def test_a_vector_of_another_encoder_is_not_found():
    vectors = QueryVectors()
    vectors.put("int8", "a", vector(1))
    assert vectors.get("fp32", "a") is None


def test_threads_share_it_within_its_bound():
    vectors = QueryVectors(most=8)

    def use(number: int) -> bool:
        vectors.put("e", str(number % 20), vector(number % 20))
        return vectors.get("e", str(number % 20)) in (None, vector(number % 20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(4_000)))
    assert sum(vectors.get("e", str(number)) is not None for number in range(20)) == 8
