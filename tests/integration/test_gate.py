"""The golden queries: what the sample registry answers must not become worse."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.integration.conftest import Mats

BASELINE = ROOT / "examples" / "baseline.json"


@pytest.fixture
def real(encoder, tmp_path) -> Mats:
    return Mats(tmp_path / "home", encoder="all-MiniLM-L6-v2")


def test_the_golden_queries_pass_the_gate(real):
    real("gate", "--baseline", str(BASELINE)).done()


def test_update_writes_a_baseline_and_a_drop_from_it_is_named_with_an_exit_code(real, tmp_path: Path):
    path = tmp_path / "baseline.json"
    assert real("gate", "--baseline", str(path), "--update").code == 0
    baseline = json.loads(path.read_text())
    baseline["sets"]["examples"]["metrics"]["mrr"] |= {"mean": 1.0, "low": 0.999}
    path.write_text(json.dumps(baseline))
    ran = real("gate", "--baseline", str(path))
    assert ran.code == 1
    assert re.findall(r"examples: (\w+) was", ran.err) == ["mrr"]
    assert "examples: mrr was 100.0 % (at least 99.9 %), now" in ran.err


def test_a_file_that_is_no_baseline_is_one_line(real, tmp_path: Path):
    real("gate", "--baseline", str(tmp_path / "missing.json")).fails(1, "missing.json")
