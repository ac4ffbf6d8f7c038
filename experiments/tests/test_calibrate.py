"""Constants fitted on one's own sets are found again under the name of the encoder's vectors."""

import json
import logging

import numpy as np
import pytest

from experiments.calibration import __main__ as command
from experiments.calibration.scale import TRUSTED, CandidateScores, fit, fit_spread
from mats.bootstrap import models as calibration
from mats.bootstrap.models import load_calibration
from mats.domain.search.trace import CalibrationSource
from mats.evaluation.data.datasets import JudgedSet, write
from tests.aws.bedrock import BedrockServer

TITAN = "amazon.titan-embed-text-v2:0"

ROW = {
    "scale": {"c": 20.0, "lo": 0.2, "hi": 0.8, "lexical_share": 0.6},
    "thresholds": {"weak": 0.2, "match": 0.9},
}


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2-53aa5117-int8"),
        ("multilingual-all-MiniLM-L6-v2", "multilingual-all-MiniLM-L6-v2-53aa5117-int8-universal-0db566fd"),
        ("bge-small-en-v1.5", "bge-small-en-v1.5-0123abcd-int8-prefixed"),
        ("amazon.titan-embed-text-v2:0", "amazon.titan-embed-text-v2:0-1024"),
        ("none", "none"),
    ],
)
def test_fitted_constants_are_found(monkeypatch, model, name):
    table = {
        "sqlite-bm25-1/some-other": {**ROW, "scale": {**ROW["scale"], "c": 99.0}},
        f"sqlite-bm25-1/{model}": ROW,
    }
    monkeypatch.setattr(calibration, "packaged_text", lambda _: json.dumps(table))
    found = load_calibration("sqlite-bm25-1", name)
    assert (found.scale.c, found.scale.lo, found.thresholds.match) == (20.0, 0.2, 0.9)
    assert found.source.fitted


def test_an_unfitted_encoder_uses_the_constants_of_the_same_index(monkeypatch, caplog):
    table = {
        "opensearch-1/all-MiniLM-L6-v2": {**ROW, "scale": {**ROW["scale"], "c": 99.0}},
        "sqlite-bm25-1/all-MiniLM-L6-v2": ROW,
    }
    monkeypatch.setattr(calibration, "packaged_text", lambda _: json.dumps(table))
    with caplog.at_level(logging.WARNING, "mats"):
        found = load_calibration("sqlite-bm25-1", "bge-small-en-v1.5-0123abcd-int8")
    assert found.scale.c == 20.0
    assert found.source == CalibrationSource(name="sqlite-bm25-1/all-MiniLM-L6-v2", fitted=False)
    assert "using that of sqlite-bm25-1/all-MiniLM-L6-v2" in caplog.text


@pytest.fixture
def calibrate(tmp_path, monkeypatch):
    """Runs the command on a set of four; returns its results, and leaves the table at tmp_path / "calibration.json"."""
    texts = {word: f"Works on every {word}." for word in ("invoice", "parcel", "contract", "holiday")}
    corpus = {word: {"type": "tool", "name": f"{word}_tool", "description": text} for word, text in texts.items()}
    queries = {word: {"text": text} for word, text in texts.items()}
    write(
        JudgedSet(corpus=corpus, queries=queries, qrels={(word, word): 1 for word in texts}), tmp_path / "sets" / "own"
    )
    table, kept = tmp_path / "calibration.json", {}
    table.write_text("{}")
    monkeypatch.setattr(command, "_TABLE", table)
    monkeypatch.setattr(command, "write_results", lambda name, result: kept.update({name: result}))
    monkeypatch.setattr("sys.argv", ["calibrate", "--data", str(tmp_path / "sets")])

    def run():
        command.main()
        return kept["calibration"]

    return run


def test_the_constants_are_fitted_on_any_sets_of_a_folder(tmp_path, monkeypatch, calibrate):
    monkeypatch.setenv("MATS_ENCODER", "none")
    results = calibrate()
    assert results["sets"] == ["own"]
    row = json.loads((tmp_path / "calibration.json").read_text())["sqlite-bm25-1/none"]
    assert 0 < row["thresholds"]["weak"] <= row["thresholds"]["match"] <= 1
    told = results["verdict"]["none"]["tested"]["told"]
    assert (told["good"]["match"], told["gibberish"]["none"]) == (1.0, 1.0)


def test_the_constants_are_fitted_for_titan_in_an_account(tmp_path, monkeypatch, calibrate):
    """As `MATS_BEDROCK=1 MATS_ENCODER=amazon.titan-embed-text-v2:0 make calibrate` does: for both indexes."""
    table = tmp_path / "calibration.json"
    with BedrockServer() as server:
        for name, value in server.client_environment().items():
            monkeypatch.setenv(name, value)
        for name, value in {"BEDROCK": "1", "ENCODER": TITAN, "CACHE": str(tmp_path / "cache")}.items():
            monkeypatch.setenv(f"MATS_{name}", value)
        results = calibrate()
        assert {exchange.model for exchange in server.exchanges} == {TITAN}
        assert server.rejected == []
    assert set(results["verdict"]) == {TITAN, "none"}
    monkeypatch.setattr(calibration, "packaged_text", lambda _: table.read_text())
    for index in ("sqlite-bm25-1", "opensearch-1"):
        found = load_calibration(index, f"{TITAN}-1024")
        assert found.source == CalibrationSource(name=f"{index}/{TITAN}", fitted=True)
        assert 0 < found.thresholds.weak <= found.thresholds.match <= 1


def test_the_scale_with_the_most_gold_in_front_is_chosen():
    lexical_is_right = CandidateScores(
        np.array([1.0, 0.0]), np.array([30.0, 1.0]), np.array([0.4, 0.5]), np.array([0, 0])
    )
    scale, grid = fit([[lexical_is_right]])
    assert max(row["match@1"] for row in grid) == 1.0
    assert scale.retrieval(30.0, 0.4) > scale.retrieval(1.0, 0.5)


def test_the_spread_that_ranks_gold_above_trusted_others_is_chosen():
    one = CandidateScores(np.array([1.0, 0.0]), np.array([20.0, 8.0]), np.array([0.5, 0.3]), np.array([0, 0]))
    close = [one] * 40
    plain, _ = fit([close])
    chosen, grid = fit_spread([close], plain)
    best = max(sum(row[name] for name in TRUSTED) for row in grid)
    taken = next(row for row in grid if (row["even"], row["spread"]) == (chosen.even, chosen.spread))
    assert sum(taken[name] for name in TRUSTED) == best
    assert taken["none"] == 1.0
    assert min(row["all, any"] for row in grid) < taken["all, any"]
