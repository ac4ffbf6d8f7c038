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
def run(environment, data):
    """The cells of an experiment over the data set with the stub's model by panel and arm, and its section."""

    def run(name: str, *options: str) -> tuple[dict, Section]:
        asked = ["run", "--data", str(data.parent), "--max-calls", "400", name, *options]
        done = CliRunner().invoke(experiments, asked, env=environment)
        assert done.exit_code == 0, done.output
        results = json.loads((data.parent / "results" / f"experiment-{name}.json").read_text())
        cells = {(panel, arm): cell for panel, one in results["sets"].items() for arm, cell in one["systems"].items()}
        return cells, EXPERIMENTS[name].section(results, paper())

    return run


ARMS = {
    "main": ("full-ctx", "search-and-pick", "trial-and-err", "pipeline-bm25"),
    "sources": ("search-and-pick",),
    "rerankers": (),
    "models": ("search-and-pick, stub", "pipeline-bm25, stub"),
    "decomposition": ("full-ctx", "pipeline-bm25"),
    "retrievers": ("pipeline-bm25",),
    "enrichment": ("raw", "enriched"),
    "sparsity": ("raw", "enriched"),
    "fields": ("none", "summary", "negative_examples"),
    "efficiency": ("full-ctx", "pipeline-bm25"),
}
"""The arms of each experiment that run with a model and without an encoder."""


@pytest.mark.parametrize(("name", "arms"), ARMS.items(), ids=ARMS)
def test_the_experiment_runs_to_the_end_with_a_model(run, name, arms):
    cells, section = run(name)
    ran = {arm for (_, arm), cell in cells.items() if "not_run" not in cell}
    assert ran >= set(arms)
    assert all("recorded" not in cell for cell in cells.values())
    rows = {row for table in section.tables for row in table.rows if not table.is_papers(row)}
    assert rows if arms else not rows


def test_each_model_is_measured_on_each_set(run):
    cells, section = run("models", "--model", "one", "--model", "two")
    assert {cells["tools", f"pipeline-bm25, {model}"]["calls"] for model in ("one", "two")} == {1}
    assert "needs an encoder" in cells["tools", "pipeline-dense, two"]["not_run"]
    assert any("Qwen3 Next" in note and "--model" in note for note in section.tables[0].notes)


def test_growing_registries_are_measured_with_the_model(run):
    cells, _ = run("scale", "--enriched")
    assert cells["3", "pipeline-bm25"]["match@1"]["mean"] in {0, 1}


def test_written_fields_change_the_registry_and_empty_summaries_are_counted(run):
    cells, _ = run("sparsity")
    assert {cells[level, "enriched"]["empty_summaries"] for level in ("full", "hint", "name-only")} <= {0, 1, 2, 3}
    assert "empty_summaries" not in cells["full", "raw"]
    assert cells["full", "enriched"]["mcnemar"]["p"] == 1


def test_an_encoder_that_cannot_be_loaded_is_named_and_the_rest_runs(run, tmp_path):
    cells, section = run("retrievers", "--encoder", str(tmp_path / "nothing"))
    assert "nothing" in cells["tools", f"{tmp_path / 'nothing'} alone"]["not_run"]
    assert "not_run" not in cells["tools", "pipeline-bm25"]
    assert any("--encoder BAAI/bge-large-en-v1.5" in note for note in section.tables[0].notes)
