"""The commands of the experiments from the outside."""

import json

import pytest
from typer.testing import CliRunner

from experiments.__main__ import app
from mats.local.cli.main import app as mats


@pytest.fixture
def run():
    def invoked(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoked


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    labels = [
        {"id": f"ultra_tool_{n}", "doc": {"name": "same", "description": "Same."}, "relevance": 1} for n in range(6)
    ]
    rows = [{"id": f"ultra_query_{n}", "query": "Do it.", "labels": [label]} for n, label in enumerate(labels)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_what_it_makes_can_be_checked(run, copy, tmp_path):
    run("dataset", "toolret", copy, tmp_path / "set")
    done = CliRunner().invoke(mats, ["dataset", "check", str(tmp_path / "set")])
    assert done.exit_code == 0
    assert "suspicious: ultra: 5 of 6 labels are not in the registry" in done.output


def test_the_papers_layout_is_measured_by_every_experiment_of_its_tables(run, copy, tmp_path, monkeypatch):
    monkeypatch.setenv("MATS_ENCODER", "none")
    for view in ("tools", "agents"):
        name = "toolret" if view == "tools" else "toolret-agents"
        assert run("dataset", "toolret", copy, tmp_path / "sets" / name, "--view", view).exit_code == 0
    done = run("run", "--data", tmp_path / "sets", "--results", tmp_path)
    assert done.exit_code == 0, done.output
    main = json.loads((tmp_path / "experiment-main.json").read_text())["sets"]
    assert {name: one["unregistered_gold"] for name, one in main.items()} == {"toolret": 5, "toolret-agents": 5}
    assert "set MATS_LLM_URL" in main["toolret"]["systems"]["search-and-pick"]["not_run"]
    assert json.loads((tmp_path / "experiment-scale.json").read_text())["sets"]["1"]["dataset"] == "toolret"
    report = run("report", "--results", tmp_path, "--out", tmp_path / "report")
    assert report.exit_code == 0, report.output


def test_what_is_no_copy_or_no_set_ends_in_one_line(run, tmp_path):
    (tmp_path / "empty").mkdir()
    for view in ("toolret", "appworld"):
        assert run("dataset", view, tmp_path / "empty", tmp_path / "o").exit_code == 1
    assert CliRunner().invoke(mats, ["dataset", "check", str(tmp_path / "empty")]).exit_code == 1
