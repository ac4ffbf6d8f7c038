"""The gate: baselines, and drops below them."""

import json

import pytest

from mats.evaluation import gate


def metrics(mean, low=0.0):
    return {"data_sha256": "d", "metrics": {"match@1": {"mean": mean, "low": low, "high": 1.0}}}


def test_a_measure_within_its_interval_passes_one_below_it_does_not_and_other_data_cannot_be_compared():
    before = metrics(0.5, low=0.45)
    assert list(gate.drops("s", before, metrics(0.45))) == []
    (drop,) = gate.drops("s", before, metrics(0.44))
    assert drop == "s: match@1 was 50.0 % (at least 45.0 %), now 44.0 %"
    with pytest.raises(gate.BaselineInvalid, match="--update"):
        list(gate.drops("s", metrics(0.5), {**metrics(0.5), "data_sha256": "e"}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"sets": []}',
        '{"sets": {"a": {}}}',
        '{"sets": {"a": {"data_sha256": "d", "metrics": {"m": {}}}}}',
    ],
)
def test_an_invalid_baseline_is_an_error_with_its_name(tmp_path, text):
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(gate.BaselineInvalid, match=r"baseline\.json"):
        gate.read_baseline(path)


def test_a_baseline_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps({"sets": {"s": metrics(0.5, low=0.4)}}))
    assert gate.read_baseline(path) == {"s": {"data_sha256": "d", "metrics": {"match@1": {"mean": 0.5, "low": 0.4}}}}


def test_of_the_main_experiment_the_first_stage_as_shipped_is_the_baseline(tmp_path):
    path = tmp_path / "experiment-main.json"
    systems = {"bm25": metrics(0.1), "hybrid": metrics(0.5), "full-ctx": {"not_run": "needs an LLM"}}
    path.write_text(json.dumps({"sets": {"s": {"data_sha256": "d", "systems": systems}}}))
    assert gate.read_baseline(path)["s"]["metrics"]["match@1"]["mean"] == 0.5


def test_a_baseline_of_another_variant_is_refused(tmp_path):
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps({"sets": {"s": {"data_sha256": "x", "variant": "pipeline-bm25", "metrics": {}}}}))
    with pytest.raises(gate.BaselineInvalid, match="one of pipeline-bm25, not of hybrid"):
        gate.read_baseline(path)
    assert gate.read_baseline(path, "pipeline-bm25") == {"s": {"data_sha256": "x", "metrics": {}}}


def test_a_set_of_a_folder_needs_the_folder():
    with pytest.raises(gate.BaselineInvalid, match="--data"):
        gate.dataset_of("tools", None)
