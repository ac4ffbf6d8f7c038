"""Thousands of real capabilities with judged queries, where they are at hand."""

import json

import pytest

from mats.domain.capability.capability import Kind
from mats.evaluation.measures import NAMES
from tests.integration.conftest import Mats

SETS = ("tools", "models", "skills", "agents", "mcp-tools")


@pytest.fixture(scope="module")
def whole(data, encoder, tmp_path_factory) -> Mats:
    """All five sets in one registry, by words only: what is tested here does not depend on vectors."""
    mats = Mats(tmp_path_factory.mktemp("whole") / "home")
    ran = mats("import", *(str(data / name / "corpus.jsonl.gz") for name in SETS), "--json")
    report = ran.json
    assert report["rows"] == 19_174
    assert len(report["rejected"]) < 10
    assert report["indexed"] == report["new"]
    return mats


def test_everything_that_can_be_registered_is_findable(whole: Mats):
    stats = whole("stats", "--json").json
    assert stats["progress"]["indexed"] == stats["registered"] > 19_000
    assert set(stats["kinds"]) == {kind.value for kind in Kind}
    assert stats["changes"] == {"waiting": 0, "dead": 0}


@pytest.mark.parametrize("kind", list(Kind))
def test_the_kind_filter_gives_that_kind_and_fills_the_list(whole: Mats, kind: Kind):
    results = whole("search", "analyse the sentiment of customer reviews", "--kind", kind, "--json").json["results"]
    assert len(results) == 15
    assert {r["kind"] for r in results} == {kind}


def test_evaluate_prints_the_measures_that_scripts_rely_on(data, tmp_path):
    mats = Mats(tmp_path / "home", encoder="all-MiniLM-L6-v2")
    measured = {}
    for variant in ("bm25", "lexical", "dense", "hybrid"):
        ran = mats("evaluate", str(data / "agents"), "--variant", variant, "--json").done()
        measured[variant] = json.loads(ran.out)["metrics"]
        assert set(measured[variant]) == set(NAMES)
    assert measured["hybrid"]["match@15"] > measured["bm25"]["match@15"] + 0.15


def test_a_folder_without_a_data_set_is_one_line(tmp_path):
    Mats(tmp_path / "home")("evaluate", str(tmp_path)).fails(1, "corpus.jsonl")
