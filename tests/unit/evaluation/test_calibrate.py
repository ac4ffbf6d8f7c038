"""The constants fitted for an encoder are found again under the name of its vectors."""

import json
import logging

import pytest

from evaluation.calibrate import encoder_key
from mats.bootstrap import calibrated, calibration
from mats.settings import Settings

ROW = {
    "scale": {"c": 20.0, "lo": 0.2, "hi": 0.8, "lexical_share": 0.6},
    "thresholds": {"weak": 0.2, "match": 0.9},
}


@pytest.mark.parametrize(
    ("encoder", "name"),
    [
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2-53aa5117-int8"),
        ("BAAI/bge-small-en-v1.5", "bge-small-en-v1.5-0123abcd-fp32"),
        ("/models/bge-small-en-v1.5", "bge-small-en-v1.5-0123abcd-int8"),
        ("amazon.titan-embed-text-v2:0", "amazon.titan-embed-text-v2:0-1024"),
        ("none", "none"),
    ],
)
def test_what_was_fitted_is_found(monkeypatch, encoder, name):
    table = {
        "sqlite-fts5-1/some-other": {**ROW, "scale": {**ROW["scale"], "c": 99.0}},
        f"sqlite-fts5-1/{encoder_key(Settings(encoder=encoder, bedrock=True))}": ROW,
    }
    monkeypatch.setattr(calibration, "resource", lambda _: json.dumps(table))
    found = calibrated("sqlite-fts5-1", name)
    assert (found.scale.c, found.scale.lo, found.thresholds.match) == (20.0, 0.2, 0.9)


def test_what_was_never_fitted_has_the_constants_of_the_same_index_and_the_log_says_so(monkeypatch, caplog):
    table = {
        "opensearch-1/all-MiniLM-L6-v2": {**ROW, "scale": {**ROW["scale"], "c": 99.0}},
        "sqlite-fts5-1/all-MiniLM-L6-v2": ROW,
    }
    monkeypatch.setattr(calibration, "resource", lambda _: json.dumps(table))
    with caplog.at_level(logging.WARNING, "mats"):
        assert calibrated("sqlite-fts5-1", "bge-small-en-v1.5-0123abcd-int8").scale.c == 20.0
    assert "using that of sqlite-fts5-1/all-MiniLM-L6-v2" in caplog.text
