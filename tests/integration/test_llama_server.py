"""Writer and reranker at a real llama.cpp server whose model knows one word: its grammar, template and stop reasons."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command import free_port
from tests.conftest import ROOT, skip_or_fail
from tests.integration.conftest import serving, tool, wait_until
from tests.servers.tiny_model import SCORE, WORD, write_tiny_model

pytestmark = pytest.mark.server

DESCRIPTION = "Refund a card payment: give the money back to the customer"
ITEMS = [
    tool("refund", description=DESCRIPTION),
    tool("geocode", description="Turn an address into coordinates"),
]


@contextmanager
def llama_server(folder: Path, *, context: int) -> Iterator[dict[str, str]]:
    """A server with a context of so many tokens: the settings that lead to it."""
    if importlib.util.find_spec("xllamacpp") is None:
        skip_or_fail("llama.cpp (requirements/servers.txt)")
    port = str(free_port())
    model = write_tiny_model(folder / "tiny.gguf")
    command = [sys.executable, "-m", "tests.servers.llama", str(model), port, str(context)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
    try:
        assert process.stdout
        assert b"ready\n" in iter(process.stdout.readline, b""), (folder / "log").read_text()
        url = f"http://127.0.0.1:{port}/v1"
        yield {"MATS_LLM_URL": url, "MATS_LLM_MODEL": "tiny", "MATS_RERANK_MS": "60000"}
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with llama_server(tmp_path_factory.mktemp("llama"), context=32_768) as settings:
        yield settings


def test_the_writer_describes_a_capability(mats, llama):
    mats("enrich", "com.acme/refund", **llama).done()
    profile = mats("show", "com.acme/refund", "--json").json["profile"]
    assert profile["enriched"]
    assert profile["enrichment"]["keywords"] == [WORD]
    assert profile["enrichment"]["summary"] == WORD


@pytest.mark.parametrize("output", ["schema", "auto"])
def test_the_reranker_scores_every_candidate(mats, llama, output):
    with serving(mats, settings={**llama, "MATS_LLM_OUTPUT": output}) as service:
        answers = []

        def has_scores() -> bool:
            """With `auto`, the first answer may be without: llama.cpp forces no tool of a template that has none."""
            answers.append(service.request("/discover", {"query": "give money back for an address"})[1])
            return answers[-1]["degraded"] == []

        wait_until(has_scores)
        assert len(answers) <= (1 if output == "schema" else 2)
    results = answers[-1]["results"]
    assert len(results) == 2
    assert {result["signals"]["llm"] for result in results} == {SCORE / 100}
    assert answers[-1]["cost"]["input_tokens"] > 100
    assert answers[-1]["cost"]["output_tokens"] > 10
    assert answers[-1]["cost"]["usd"] is None


def test_a_request_beyond_the_context_costs_the_signal_only_and_the_writer_says_what_to_do(mats, tmp_path):
    with llama_server(tmp_path, context=256) as short:
        ran = mats("search", "--json", "give money back", **short)
        assert ran.json["degraded"] == ["llm"]
        assert ran.json["results"][0]["name"] == "refund"
        refused = mats("enrich", "com.acme/refund", **short)
    assert refused.code != 0
    assert "context" in refused.err
