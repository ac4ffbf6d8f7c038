"""Any server that speaks chat completions runs the evaluation: pipeline, baselines and the main experiment."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.__main__ import app as experiments
from experiments.catalogue import EXPERIMENTS
from experiments.report.cells import Section
from experiments.report.results import paper
from mats.evaluation.data.datasets import JudgedSet, write
from mats.local.cli.main import app as mats


class Stub(BaseHTTPRequestHandler):
    """Calls the first tool it is given with what the tool's schema asks for."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        turns = sum(message["role"] == "assistant" for message in asked["messages"])
        function = asked["tools"][min(turns, len(asked["tools"]) - 1)]["function"]
        arguments = {name: self.value(shape) for name, shape in function["parameters"]["properties"].items()}
        call = {"id": f"call{turns}", "function": {"name": function["name"], "arguments": json.dumps(arguments)}}
        choice = {"finish_reason": "tool_calls", "message": {"content": "", "tool_calls": [call]}}
        body = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def value(self, shape: dict) -> object:
        if shape["type"] == "array":
            return [1] * shape.get("minItems", 1) if shape["items"]["type"] == "integer" else ["refund a card"]
        return 1 if shape["type"] == "integer" else "refund a card"

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.chdir(tmp_path)
    yield {
        "MATS_LLM_URL": f"http://127.0.0.1:{server.server_port}/v1", "MATS_LLM_MODEL": "stub",
        "MATS_ENCODER": "none", "MATS_CACHE": str(tmp_path / "cache"), "MATS_HOME": str(tmp_path / "home"),
    }  # fmt: skip
    server.shutdown()
    server.server_close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    names = ("refund a card payment", "list refunds of a card", "resize a photo")
    corpus = {f"t{n}": {"type": "tool", "name": f"t{n}", "description": text} for n, text in enumerate(names)}
    folder = tmp_path / "sets" / "tools"
    write(JudgedSet(corpus=corpus, queries={"q": {"text": "refund a card"}}, qrels={("q", "t0"): 1}), folder)
    return folder


@pytest.mark.parametrize("variant", ["pipeline-bm25", "search-and-pick", "trial-and-err", "full-ctx"])
def test_mats_evaluate_runs_to_the_end(environment, data, variant):
    asked = ["evaluate", str(data), "--variant", variant, "--max-calls", "50", "--json"]
    done = CliRunner().invoke(mats, asked, env=environment)
    assert done.exit_code == 0, done.output
    results = json.loads(done.stdout)
    assert (results["llm"], results["failed"]) == ("stub", 0)
    assert results["calls"] >= 1


@pytest.fixture
def experiment(environment, data, tmp_path, monkeypatch):
    """The results of an experiment over the data set with the stub's model, and its section of the report."""
    monkeypatch.setattr("mats.evaluation.results.RESULTS", tmp_path)

    def run(name: str, *options: str) -> tuple[dict, Section]:
        asked = ["run", "--data", str(data.parent), "--max-calls", "400", name, *options]
        done = CliRunner().invoke(experiments, asked, env=environment)
        assert done.exit_code == 0, done.output
        results = json.loads((tmp_path / f"experiment-{name}.json").read_text())
        return results, EXPERIMENTS[name].section(results, paper())

    return run


def cells(section: Section, table: str) -> list[tuple[str, ...]]:
    """Our rows of a table."""
    [found] = [one for one in section.tables if one.id == table]
    return [row for row in found.rows if not found.is_papers(row)]


def test_the_main_experiment_runs_to_the_end(experiment):
    results, section = experiment("main")
    [one] = results["sets"].values()
    ran = {name for name, system in one["systems"].items() if "not_run" not in system}
    assert {"full-ctx", "search-and-pick", "trial-and-err", "pipeline-bm25"} <= ran
    assert one["systems"]["search-and-pick"]["sources"]["unnamed"]["queries"] == 1
    assert "main-sources" in {table.id for table in section.tables}


def test_each_model_is_measured_on_each_set(experiment):
    results, section = experiment("models", "--model", "one", "--model", "two")
    assert list(results["models"]) == ["one", "two"]
    rows = cells(section, "models-match-1")
    assert [row[:2] for row in rows] == [("tools (3)", "one"), ("tools (3)", "two")]
    assert {row[-2] for row in rows} == {"not run"}, "there is no encoder"
    assert "Qwen3 Next" in section.tables[0].notes[-1]


def test_growing_registries_are_measured_with_the_model(experiment):
    results, _ = experiment("scale", "--enriched")
    assert results["systems"]["pipeline-bm25"][0]["match@1"]
