"""The gate: what counts as a loss, and baselines."""

import json

import pytest

from mats.evaluation import gate
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, JudgedQuery

JUDGED, UNJUDGED = frozenset({"a/b"}), frozenset()


def outcomes(*places, verdicts="", digest="d"):
    return gate.Outcomes(digest, places, verdicts or "".join("m" if place == 1 else "w" for place in places))


def dataset(count, unjudged=0):
    relevant = [JUDGED] * (count - unjudged) + [UNJUDGED] * unjudged
    return Dataset("s", [], [JudgedQuery(str(n), "", each) for n, each in enumerate(relevant)], {}, "d")


def failed(before, now, unjudged=0):
    return [one.name for one in gate.compare(dataset(len(before.places), unjudged), before, now) if one.is_loss]


FIRST, AMONG = "match@1", "match@15"
WRONG, RIGHT = "no false match", "no missed match"


@pytest.mark.parametrize(
    ("before", "now", "fails"),
    [
        ([1] * 200, [1] * 200, []),
        ([1] * 200, [1] * 198 + [2] * 2, []),  # one in a hundred, and p is .25
        ([1] * 200, [1] * 197 + [2] * 3, [FIRST]),  # more than one in a hundred
        ([1] * 995 + [2] * 5, [2] * 5 + [1] * 990 + [1] * 5, []),  # as many gained as lost
        ([1] * 1_000, [1] * 995 + [2] * 5, [FIRST]),  # half in a hundred, and p is .03
        ([1] * 999 + [2], [1] * 995 + [2] * 4 + [1], []),  # four lost, one gained: p is .19
        ([1] * 200, [1] * 190 + [16] * 10, [FIRST, AMONG]),
        ([15] * 200, [15] * 190 + [0] * 10, [AMONG]),
        ([3] * 200, [1] * 200, []),
    ],
)  # fmt: skip
def test_a_loss_is_more_than_one_in_a_hundred_or_significant(before, now, fails):
    assert failed(outcomes(*before), outcomes(*now)) == fails


@pytest.mark.parametrize(
    ("places", "before", "now", "fails"),
    [
        ((1, 0), "mw", "mw", []),
        ((1, 0), "mw", "mm", [WRONG]),
        ((1, 0), "mw", "ww", [RIGHT]),
        ((1, 0), "wm", "mw", []),
        ((1, 0), "mn", "mw", []),
    ],
)
def test_a_verdict_that_errs_more_often_is_a_loss(places, before, now, fails):
    assert failed(outcomes(*places, verdicts=before), outcomes(*places, verdicts=now)) == fails


def test_a_query_without_a_relevant_capability_is_only_judged_by_its_verdict():
    before, now = outcomes(1, 0, verdicts="mn"), outcomes(1, 0, verdicts="mm")
    first, among, wrong, _ = gate.compare(dataset(2, unjudged=1), before, now)
    assert (first.now, among.now, wrong.now) == (1.0, 1.0, 0.5)


def test_a_set_that_nothing_serves_is_only_judged_by_its_verdicts():
    checks = gate.compare(dataset(2, unjudged=2), outcomes(0, 0, verdicts="nn"), outcomes(0, 0, verdicts="nm"))
    assert [(check.name, check.before, check.now) for check in checks] == [(WRONG, 1.0, 0.5), (RIGHT, 1.0, 1.0)]


def test_other_data_cannot_be_compared():
    with pytest.raises(gate.BaselineInvalid, match="--update"):
        gate.compare(dataset(1), outcomes(1), outcomes(1, digest="e"))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"sets": []}', '{"sets": {"a": {}}}', '{"sets": {"a": {"metrics": {}}}}'],
)
def test_an_invalid_baseline_is_an_error_with_its_name(tmp_path, text):
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(gate.BaselineInvalid, match=r"baseline\.json"):
        gate.read_baseline(path)


def test_a_missing_baseline_is_no_reason_to_remove_it(tmp_path):
    with pytest.raises(gate.BaselineInvalid, match="correct its path, or make one"):
        gate.read_baseline(tmp_path / "baseline.json")


def test_a_baseline_is_read_as_it_was_written(tmp_path):
    path, sets = tmp_path / "baseline.json", {"s": gate.Outcomes("d", [1, 0, 15], "mwn")}
    gate.write_baseline(path, sets)
    assert gate.read_baseline(path) == sets
    assert json.loads(path.read_text())["sets"]["s"]["places"] == "1 0 15"


def test_a_set_of_a_folder_needs_the_folder():
    with pytest.raises(gate.BaselineInvalid, match="--data"):
        gate.dataset_of("tools", None)


def a_folder(folder, *qrels):
    (folder / "s").mkdir()
    for name, lines in {
        "corpus.jsonl": ['{"namespace": "a", "name": "b", "kind": "tool"}'],
        "queries.jsonl": ['{"_id": "1", "text": "x"}', '{"_id": "2", "text": "y"}'],
        "qrels.tsv": qrels,
    }.items():
        (folder / "s" / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("header", [["query\tdocument\tgrade"], []], ids=["header", "no header"])
def test_every_judged_query_counts_also_one_that_nothing_serves(tmp_path, header):
    found = gate.dataset_of("s", a_folder(tmp_path, *header, "1\ta/b\t1", "2\ta/b\t0"))
    assert [bool(query.relevant) for query in found.queries] == [True, False]


@pytest.mark.parametrize("qrels", [[], ["query\tdocument\tgrade"], ["3\ta/b\t1"]])
def test_a_set_without_a_judged_query_is_refused(tmp_path, qrels):
    with pytest.raises(DatasetInvalid, match="s has no judged query: name"):
        gate.dataset_of("s", a_folder(tmp_path, *qrels))


def test_a_first_line_that_may_be_a_wrong_label_is_named(tmp_path):
    with pytest.raises(DatasetInvalid, match=r"qrels\.tsv, line 1: needs query"):
        gate.dataset_of("s", a_folder(tmp_path, "1 a/b 1", "2\ta/b\t0"))
