"""The measures against arithmetic by hand, and the run formats they read."""

import gzip
import json

import numpy as np
import pytest

from mats.domain.capability.capability import Id
from mats.domain.search.verdict import Verdict
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, JudgedQuery, load
from mats.evaluation.measures import NAMES, estimate, per_query
from mats.evaluation.systems.base import SystemAnswer
from mats.evaluation.systems.catalogue import PlainBm25, names_and_descriptions
from mats.evaluation.systems.score import verdicts_json
from tests.builders import a_registration


def query(id: str, *relevant: str) -> JudgedQuery:
    return JudgedQuery(id, id, frozenset(map(Id, relevant)))


def test_every_measure_has_its_definition():
    queries = [query("q1", "a", "b"), query("q2", "c"), query("q3", "z")]
    run = {"q1": ["x", "a", "y", "b"], "q2": ["c"], "q3": []}
    values = {name: list(v) for name, v in per_query(run, queries).items()}
    assert values == {
        "match@1": [0, 1, 0],
        "match@3": [1, 1, 0],
        "match@5": [1, 1, 0],
        "match@15": [1, 1, 0],
        "mrr": [0.5, 1, 0],
        "recall@15": [1, 1, 0],
        "recall@5": [1, 1, 0],
        "all@15": [1, 1, 0],
    }
    assert tuple(values) == NAMES


def test_a_query_whose_grades_are_all_0_is_one_that_nothing_serves(tmp_path):
    rows = [{"_id": "c", "type": "tool", "name": "count_tokens", "description": "Count the tokens of a text."}]
    texts = [{"_id": "q1", "text": "count tokens"}, {"_id": "q2", "text": "book a flight"}, {"_id": "q3", "text": "?"}]
    written(
        tmp_path, corpus=rows, queries=texts, qrels=[("q1", "c", 1), ("q1", "x", 0), ("q2", "-", 0), ("q9", "c", 1)]
    )
    dataset = load(tmp_path)
    assert [[each.id for each in some] for some in (dataset.queries, dataset.absent)] == [["q1"], ["q2"]]
    assert dataset.unasked == ["q9"]


@pytest.mark.parametrize(
    ("verdict", "ranked", "relevant", "counted"),
    [
        (Verdict.MATCH, ["a"], ["a"], {}),
        (Verdict.MATCH, ["b", "a"], ["a"], {"false_match": 1}),
        (Verdict.WEAK, ["b"], ["a"], {}),
        (Verdict.NONE, ["a"], ["a"], {"false_none": 1}),
        (Verdict.NONE, ["a"], [], {"absent": 1, "absent_none": 1}),
        (Verdict.MATCH, ["a"], [], {"absent": 1, "false_match": 1}),
        (None, ["a"], ["a"], None),
    ],
)
def test_wrong_verdicts_are_counted(verdict, ranked, relevant, counted):
    one, answers = query("q", *relevant), {"q": SystemAnswer(ranked=ranked, verdict=verdict)}
    other = {"p": SystemAnswer(ranked=["z"], verdict=verdict and Verdict.MATCH)}
    queries = [query("p", "z"), *([one] if relevant else [])]
    dataset = Dataset("set", [], queries, {}, "", absent=[] if relevant else [one])
    found = verdicts_json(dataset, {**other, **(answers if relevant else {})}, {} if relevant else answers)
    nothing = dict.fromkeys(("false_match", "false_none", "absent", "absent_none"), 0)
    assert found == ({} if counted is None else {**nothing, **counted})


def test_recall_is_the_share_of_the_gold_found():
    values = per_query({"q": ["a", "x"]}, [query("q", "a", "b", "c", "d")])
    assert list(values["recall@15"]) == [0.25]
    assert list(values["all@15"]) == [0]


def test_our_order_counts_instead_of_trec_evals_tie_rule():
    for order in (["a", "b", "c"], ["c", "b", "a"]):
        assert list(per_query({"q": order}, [query("q", order[0])])["match@1"]) == [1]


def test_an_interval_holds_its_mean_and_repeats():
    values = np.array([0.0, 1.0] * 50)
    first, second = estimate(values), estimate(values)
    assert first == second
    assert first.low < first.mean == 0.5 < first.high


def written(folder, *, corpus, queries, qrels, packed=True):
    texts = {
        "corpus.jsonl": "\n".join(json.dumps(row) for row in corpus),
        "queries.jsonl": "\n".join(json.dumps(row) for row in queries),
        "qrels.tsv": "query-id\tcorpus-id\tscore\n" + "\n".join("\t".join(map(str, row)) for row in qrels),
    }
    for name, text in texts.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    return folder


CORPUS = [
    {"_id": "d1", "type": "tool", "name": "pay", "source": "s"}, {"_id": "d2", "type": "tool", "name": ""},
    {"trust": {"id": "s.d1/pay", "trust": 80}}, {"held": {"id": "s.d1/pay"}},  # as `mats export` writes it
]  # fmt: skip
QUERIES = [{"_id": "q1", "text": "pay"}, {"_id": "q2", "text": "unjudged"}]
QRELS = [("q1", "d1", 1), ("q1", "d2", 1), ("q1", "d3", 0), ("q9", "d1", 1)]


def test_a_data_set_is_read_plain_or_packed(tmp_path):
    with pytest.raises(DatasetInvalid, match=r"corpus\.jsonl"):
        load(tmp_path)
    packed = load(written(tmp_path, corpus=CORPUS, queries=QUERIES, qrels=QRELS))
    for file in tmp_path.iterdir():
        file.unlink()
    plain = load(written(tmp_path, corpus=CORPUS, queries=QUERIES, qrels=QRELS, packed=False))
    assert plain.digest == packed.digest
    for dataset in (plain, packed):
        assert [r.id for r in dataset.registrations] == ["s.d1/pay"]
        assert list(dataset.refused) == ["d2"]
        assert dataset.queries == [JudgedQuery("q1", "pay", frozenset({Id("s.d1/pay"), Id("d2")}))]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("corpus.jsonl", '{"_id": "d1"}\n{broken', r"corpus\.jsonl, line 2.*is not JSON"),
        ("corpus.jsonl", "[]", r"corpus\.jsonl, line 1.*object"),
        ("queries.jsonl", '{"_id": "q1"}', r"queries\.jsonl, query 1.*text"),
        ("queries.jsonl", '{"_id": 7, "text": "x"}', r"queries\.jsonl, query 1"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td1", r"qrels\.tsv, line 2.*tabs"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td1\tyes", r"qrels\.tsv, line 2"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, name, text, fault):
    written(tmp_path, corpus=CORPUS, queries=QUERIES, qrels=QRELS, packed=False)
    (tmp_path / name).write_text(text)
    with pytest.raises(DatasetInvalid, match=fault):
        load(tmp_path)


def test_plain_bm25_finds_stems_in_names_and_descriptions_and_nothing_else():
    registrations = [
        a_registration(name="refund", description="gives money back"),
        a_registration(name="geocode", description="addresses"),
        a_registration(name="other", description="x y", examples=("refund",)),
    ]
    index = PlainBm25(names_and_descriptions(registrations))
    assert [id.rpartition("/")[2] for id in index.search("refunding money", 5)] == ["refund"]
    assert [id.rpartition("/")[2] for id in index.search("the address", 5)] == ["geocode"]
    assert index.search("nothing here", 5) == []
