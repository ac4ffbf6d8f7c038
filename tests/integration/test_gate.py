"""The golden queries: what the sample registry answers must not become worse."""

import json
import re

import pytest

from tests.conftest import ROOT
from tests.integration.conftest import Mats

BASELINE = ROOT / "examples" / "baseline.json"


@pytest.fixture
def real(encoder, tmp_path) -> Mats:
    return Mats(tmp_path / "home", encoder="all-MiniLM-L6-v2")


def test_the_golden_queries_pass_the_gate(real):
    real("gate", "--baseline", str(BASELINE)).done()


def test_update_writes_a_baseline_and_shows_what_changed_and_a_loss_from_it_is_named_with_an_exit_code(real, tmp_path):
    path = tmp_path / "baseline.json"
    assert real("gate", "--baseline", str(path), "--update").code == 0
    written = path.read_text()
    baseline = json.loads(written)
    one = baseline["sets"]["examples"]
    one["places"] = re.sub(r"^(\S+ ){20}", "1 " * 20, one["places"].replace("2", "1"))
    path.write_text(json.dumps(baseline))
    ran = real("gate", "--baseline", str(path))
    assert ran.code == 1
    assert "examples: match@1 fell from " in ran.err
    assert "lost" in ran.out
    one["data_sha256"] = "of earlier data"
    path.write_text(json.dumps(baseline))
    updated = real("gate", "--baseline", str(path), "--update").done()
    assert (updated.out, "examples has changed: its queries are compared" in updated.err) == (ran.out, True)
    assert path.read_text() == written
    one["places"], one["verdicts"] = "1", "m"
    path.write_text(json.dumps(baseline))
    updated = real("gate", "--baseline", str(path), "--update").done()
    assert ("+" in updated.out, "another number of queries" in updated.err) == (False, True)
