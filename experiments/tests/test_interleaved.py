"""Variants take turns over blocks of texts."""

from itertools import pairwise

from experiments.benchmarks.interleaved import compare_latencies
from mats.domain.ranking.query import Query


def test_each_variant_answers_each_text_once_after_a_warm_up_and_another_one_begins_each_block():
    asked: list[tuple[str, str]] = []

    def answering(name: str):
        def answer(query: Query) -> None:
            asked.append((name, query.query or ""))

        return answer

    texts = [f"text {number}" for number in range(120)]
    found = compare_latencies(
        {name: answering(name) for name in ("one", "other")}, texts, between=lambda: asked.append(("pause", ""))
    )
    assert {name: row["answers"] for name, row in found.items()} == {"one": 120, "other": 120}
    assert found["one"]["p50_ratio"] == 1
    blocks = [name for (name, _), (then, _) in pairwise(asked) if then == "pause"]
    assert blocks == ["one", "other", "one", "other", "other", "one", "one", "other"]
    measured = [text for name, text in asked if name == "other"][50:]
    assert sorted(measured) == sorted(texts)
