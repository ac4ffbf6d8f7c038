"""What the programs of docs/integrations run against: a real mats, a stand-in for a tool server, their own packages."""

import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command import Mats, Service, serving
from tests.conftest import ROOT, skip_or_fail
from tests.frameworks.tool_server import ToolServer, tool_server
from tests.pages import INTEGRATIONS, blocks, files

PYTHON = Path(sys.prefix) / ".integrations" / "bin" / "python"
CLIENT = ROOT / "layers" / "core" / "python"
"""Where the client of mats is: an agent's environment installs it from a clone."""
SERVICE = "127.0.0.1:8080"  # The address of mats in the pages


def commands(page: str) -> list[str]:
    """The commands of a page's `console` blocks."""
    texts = [block.text for block in blocks(INTEGRATIONS / page) if block.language == "console"]
    return [line.removeprefix("$ ") for text in texts for line in text.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="session")
def tools() -> Iterator[ToolServer]:
    """The server whose tools are found."""
    with tool_server() as serving_tools:
        yield serving_tools


@pytest.fixture(scope="session")
def home(tools: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Mats:
    """The sample registry, into which the tools were imported as the page says."""
    mats = Mats(tmp_path_factory.mktemp("frameworks") / "home", encoder="all-MiniLM-L6-v2")
    with serving(mats, "--sample"):
        (command,) = [line for line in commands("find-then-call.md") if " import " in line]
        words = shlex.split(command.replace("https://mcp.deepwiki.com/mcp", tools.url))
        ran = mats(*words[1:])
        assert ran.code == 0, ran.err
    return mats


@pytest.fixture(scope="session")
def service(home: Mats) -> Iterator[Service]:
    """mats as `make run` serves it."""
    with serving(home) as service:
        yield service


@dataclass(frozen=True)
class Program:
    """Files of pages in a folder, run by the Python that has the frameworks."""

    folder: Path
    service: Service
    home: Path

    def write(self, page: str, file: str, **replaced: str) -> None:
        """Write a file as its page prints it, but for addresses."""
        (text,) = files(INTEGRATIONS / page)[file]
        assert all(old in text for old in replaced), f"{file} of {page} has not all of {', '.join(replaced)}"
        here = {SERVICE: self.service.url.removeprefix("http://"), "Caller()": "Caller(private=True)"}
        for old, new in {**here, **replaced}.items():
            text = text.replace(old, new)
        (self.folder / file).write_text(text, "utf-8")

    def run(self, file: str, model: str = "") -> str:
        """What the program prints, with OpenAI's API at that address. It reaches this machine only."""
        addresses = {"OPENAI_BASE_URL": model, "OPENAI_API_BASE": model}  # LlamaIndex has a name of its own
        ran = subprocess.run(
            [str(PYTHON), file], cwd=self.folder, env={**environment(), **addresses}, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, f"{ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def outcomes(self) -> set[tuple[str, str, str]]:
        """What has been reported of results: the query, the capability, the events."""
        with closing(sqlite3.connect(f"file:{self.home}/mats.db?mode=ro", uri=True)) as database:
            return {*database.execute("SELECT query_id, id, events FROM outcomes")}


def environment() -> dict[str, str]:
    """The variables of a program that may reach this machine only, and sends nobody a report on itself."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "tests" / "frameworks" / "loopback_only", CLIENT))),
        "OPENAI_API_KEY": "a-key-of-this-test",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "DO_NOT_TRACK": "1",
    }


@pytest.fixture
def program(service: Service, home: Mats, tmp_path: Path) -> Program:
    """A folder for the files of a page."""
    if not PYTHON.exists():
        skip_or_fail("agent frameworks (make test-servers installs them)")
    return Program(tmp_path, service, home.home)
