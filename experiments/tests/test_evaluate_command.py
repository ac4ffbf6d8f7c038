"""`mats evaluate` with a model: its bound, its failures, and what it writes."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from experiments.tests.test_evaluation_models import a_labelled_folder, of_refund, picking
from mats.local.cli.main import app
from mats.settings import TITAN, Settings
from tests.aws.bedrock import Refuse

TOO_LONG = "Input is too long for requested model."


@pytest.fixture
def run(server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The command over a made-up set of five queries."""
    folder = a_labelled_folder(tmp_path / "set")
    settings = Settings(bedrock=True, region="us-east-1", encoder=f"{TITAN}:0", cache=tmp_path / "cache")
    for name, value in settings.to_env().items():
        monkeypatch.setenv(name, value)

    def invoked(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["evaluate", str(folder), "--variant", "full-ctx", *arguments])

    return invoked


def test_nothing_is_called_without_a_budget(server, run, monkeypatch):
    done = run()
    assert done.exit_code == 1
    assert "set --max-usd" in done.stderr
    monkeypatch.setenv("MATS_RERANK_MODEL", "nobody.knows-it")
    done = run("--max-usd", "1")
    assert done.exit_code == 1
    assert "the price of nobody.knows-it is not known" in done.stderr
    assert server.exchanges == []


def test_a_spent_budget_ends_the_run_with_a_message(server, run):
    done = run("--max-calls", "2")
    assert done.exit_code == 3
    assert "the budget of 2 calls is spent" in done.stderr


def test_a_run_whose_queries_all_failed_prints_no_measure_and_fails(server, run, tmp_path):
    server.play = lambda exchange: Refuse("ValidationException", TOO_LONG)
    done = run("--max-usd", "1")
    assert done.exit_code == 1
    assert "0.000" not in done.stdout
    assert "failed 5/5; the commonest reason (5): " in done.stderr
    assert TOO_LONG in done.stderr
    told = run("--max-usd", "1", "--json")
    assert told.exit_code == 1
    found = json.loads(told.stdout)
    assert (found["failed"], list(found["reasons"].values()), found["metrics"]["match@1"]) == (5, [5], None)


def test_a_run_whose_queries_all_failed_keeps_earlier_results(server, run, tmp_path):
    server.play = picking
    assert run("--max-usd", "1").exit_code == 0
    path = tmp_path / "set" / "results" / "evaluate-full-ctx.json"
    earlier = path.read_text()
    assert json.loads(earlier)["failed"] == 0
    (tmp_path / "cache" / "model-replies.db").unlink()
    server.play = lambda exchange: Refuse("ValidationException", TOO_LONG)
    done = run("--max-usd", "1")
    assert done.exit_code == 1
    assert "the earlier results of evaluate-full-ctx stay" in done.stderr
    assert path.read_text() == earlier


def test_some_failures_are_named_and_the_rest_is_measured(server, run):
    server.play = lambda exchange: Refuse("ValidationException", TOO_LONG) if of_refund(exchange) else picking(exchange)
    done = run("--max-usd", "1")
    assert done.exit_code == 0
    assert "failed 1/5; the commonest reason (1): " in done.stderr
    assert "match@1" in done.stdout


def test_undefined_measures_are_dashes(server, run):
    server.play = picking
    done = run("--max-usd", "1")
    rows = [line for line in done.stdout.splitlines() if "mrr" in line]
    assert len(rows) == 1
    assert rows[0].count("–") == 2
